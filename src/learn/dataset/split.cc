#include "learn/dataset/split.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <unordered_map>

#include "base/hash.h"
#include "base/input_file.h"
#include "base/json_text.h"
#include "record/jsonl.h"

namespace tensorsmith::learn {

namespace {

using Json = nlohmann::json;

// A split file has one digit per record.
constexpr int64_t kMaxSplitBytes = int64_t{1} << 30;

// Returns a number in [0, 1) that depends only on seed and key.
double draw(uint64_t seed, uint64_t key) { return Hasher().add(seed).add(key).uniform(); }

Part part_at(double x, const SplitOptions& o) {
  if (x < o.test) return Part::kTest;
  return x < o.test + o.validation ? Part::kValidation : Part::kTrain;
}

// Assigns whole tasks. Cutting a randomly ordered list gives each part its share of tasks, whereas
// independent draws could leave a part empty.
std::vector<Part> parts_of_workloads(const Store& store, const SplitOptions& o) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t w = 0; w < store.workloads().size(); ++w)
    order.emplace_back(draw(o.seed, Hasher().add(store.workloads()[w].key).digest64()), w);
  std::sort(order.begin(), order.end());
  std::vector<Part> parts(order.size());
  for (size_t i = 0; i < order.size(); ++i) parts[order[i].second] = part_at((i + 0.5) / order.size(), o);
  return parts;
}

}  // namespace

std::string_view to_string(Part part) {
  switch (part) {
    case Part::kTrain:
      return "train";
    case Part::kValidation:
      return "validation";
    case Part::kTest:
      return "test";
    case Part::kUnused:
      return "unused";
  }
  return "?";
}

std::string_view to_string(SplitKind kind) {
  switch (kind) {
    case SplitKind::kWithinTask:
      return "within-task";
    case SplitKind::kByTask:
      return "by-task";
    case SplitKind::kByDevice:
      return "by-device";
    case SplitKind::kFewTasks:
      return "few-tasks";
  }
  return "?";
}

Result<SplitKind> parse_split_kind(const std::string& name) {
  for (const SplitKind kind :
       {SplitKind::kWithinTask, SplitKind::kByTask, SplitKind::kByDevice, SplitKind::kFewTasks}) {
    if (name == to_string(kind)) return kind;
  }
  return Error{ErrorCode::kInvalidArgument, "",
               "'" + name + "' is not a kind of split; use within-task, by-task, by-device or few-tasks"};
}

std::vector<int64_t> Split::records_of(Part part) const {
  std::vector<int64_t> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == part) out.push_back(i);
  }
  return out;
}

std::string Split::content_hash() const {
  Hasher hasher;
  hasher.add(store_hash);
  for (const Part part : parts) hasher.add(part);
  return hasher.hex128();
}

Result<Split> make_split(const Store& store, const SplitOptions& options) {
  const bool by_device = options.kind == SplitKind::kByDevice || options.kind == SplitKind::kFewTasks;
  const bool shares =
      options.validation >= 0 && options.test >= 0 && options.validation + (by_device ? 0 : options.test) < 1;
  if (!shares)
    return Error{ErrorCode::kInvalidArgument, "",
                 "the shares for validation and test leave no data for training"};
  std::vector<char> tests(store.devices().size(), 0);
  if (by_device) {
    if (options.test_devices.empty())
      return Error{ErrorCode::kInvalidArgument, "",
                   "this kind of split needs a device to test on (--test-device)"};
    for (const std::string& name : options.test_devices) {
      const auto it = std::find(store.devices().begin(), store.devices().end(), name);
      if (it == store.devices().end())
        return Error{ErrorCode::kNotFound, "", "device '" + name + "' is not in the store"};
      tests[it - store.devices().begin()] = 1;
    }
  }
  Split split;
  split.options = options;
  split.store_hash = store.content_hash();
  split.parts.resize(store.size(), Part::kUnused);
  const std::vector<Part> by_workload = parts_of_workloads(store, options);
  SplitOptions training = options;
  training.test = 0;
  std::vector<uint32_t> named;
  for (const std::string& key : options.profiled) {
    const auto it = std::find_if(store.workloads().begin(), store.workloads().end(),
                                 [&](const StoredWorkload& workload) { return workload.key == key; });
    if (it == store.workloads().end())
      return Error{ErrorCode::kNotFound, "", "workload '" + key + "' is not in the store"};
    named.push_back(it - store.workloads().begin());
  }
  std::set<std::pair<uint32_t, uint32_t>> profiled;  // pairs (workload, device)
  for (uint32_t d = 0; d < tests.size() && options.kind == SplitKind::kFewTasks; ++d) {
    if (tests[d] == 0) continue;
    for (const uint32_t w :
         named.empty() ? choose_tasks(store, d, options.profile_tasks, options.choice, options.seed) : named)
      profiled.emplace(w, d);
  }
  std::map<std::pair<uint32_t, uint32_t>, int64_t> measured;
  for (int64_t i = 0; i < store.size() && options.min_records > 0; ++i) {
    const Store::Entry entry = store.entry(i);
    if (!entry.failed()) ++measured[{entry.workload, entry.device}];
  }
  for (int64_t i = 0; i < store.size(); ++i) {
    const Store::Entry entry = store.entry(i);
    if (entry.rows == 0) continue;
    if (options.min_records > 0 && measured[{entry.workload, entry.device}] < options.min_records) continue;
    Part part = Part::kTrain;
    switch (options.kind) {
      case SplitKind::kWithinTask:
        part = part_at(draw(options.seed, entry.program), options);
        break;
      case SplitKind::kByTask:
        part = by_workload[entry.workload];
        break;
      case SplitKind::kByDevice:
      case SplitKind::kFewTasks:
        part = tests[entry.device] != 0 && profiled.count({entry.workload, entry.device}) == 0
                   ? Part::kTest
                   : part_at(draw(options.seed, entry.program), training);
        break;
    }
    split.parts[i] = part;
  }
  return split;
}

Status check_split(const Store& store, const Split& split) {
  if (split.store_hash != store.content_hash() || std::ssize(split.parts) != store.size())
    return Error{ErrorCode::kMismatch, "", "the split was made for another store"};
  std::unordered_map<uint64_t, Part> seen;
  for (int64_t i = 0; i < store.size(); ++i) {
    const Part part = split.parts[i];
    if (part == Part::kUnused) continue;
    const Store::Entry entry = store.entry(i);
    uint64_t key = entry.program;
    Part side = part;
    if (split.options.kind == SplitKind::kByTask)
      key = Hasher().add(store.workloads()[entry.workload].key).digest64();
    if (split.options.kind == SplitKind::kByDevice || split.options.kind == SplitKind::kFewTasks) {
      key = split.options.kind == SplitKind::kByDevice
                ? entry.device
                : Hasher().add(uint64_t{entry.device}).add(uint64_t{entry.workload}).digest64();
      if (side == Part::kValidation) side = Part::kTrain;  // may share devices and tasks with training
    }
    const auto [it, added] = seen.emplace(key, side);
    if (!added && it->second != side)
      return Error{ErrorCode::kInvalidArgument, "record " + std::to_string(i),
                   "is in part " + std::string(to_string(part)) + " of a " +
                       std::string(to_string(split.options.kind)) +
                       " split, but an equal record is in part " + std::string(to_string(it->second))};
  }
  return {};
}

// The file has a JSON header line and a line with one digit per record.
Status save_split(const Split& split, const std::string& path) {
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(path));
  const SplitOptions& o = split.options;
  const Json header = {{"type", "split"},
                       {"v", 1},
                       {"kind", to_string(o.kind)},
                       {"validation", o.validation},
                       {"test", o.test},
                       {"test_devices", o.test_devices},
                       {"profile_tasks", o.profile_tasks},
                       {"choice", to_string(o.choice)},
                       {"profiled", o.profiled},
                       {"seed", o.seed},
                       {"min_records", o.min_records},
                       {"store", split.store_hash},
                       {"records", split.parts.size()}};
  TS_RETURN_IF_ERROR(writer->write_line(header.dump()));
  std::string digits;
  digits.reserve(split.parts.size());
  for (Part part : split.parts) digits += static_cast<char>('0' + static_cast<int>(part));
  TS_RETURN_IF_ERROR(writer->write_line(digits));
  return writer->commit();
}

Result<Split> load_split(const std::string& path) {
  TS_ASSIGN_OR_RETURN(std::string text, read_input(path, kMaxSplitBytes));
  std::istringstream file(std::move(text));
  std::string line, digits;
  std::getline(file, line);
  std::getline(file, digits);
  const Json json = parse_json<Json>(line);
  try {
    if (!json.is_object() || json.at("type") != "split" || json.at("v") != 1)
      return Error{ErrorCode::kCorrupt, path, "is not a split of a store"};
    Split split;
    TS_ASSIGN_OR_RETURN(split.options.kind, parse_split_kind(json.at("kind")));
    split.options.validation = json.at("validation");
    split.options.test = json.at("test");
    split.options.test_devices = json.at("test_devices").get<std::vector<std::string>>();
    // Older split files lack the options of few-tasks.
    split.options.profile_tasks = json.value("profile_tasks", split.options.profile_tasks);
    TS_ASSIGN_OR_RETURN(split.options.choice, parse_task_choice(json.value(
                                                  "choice", std::string(to_string(split.options.choice)))));
    split.options.profiled = json.value("profiled", std::vector<std::string>());
    split.options.seed = json.at("seed");
    split.options.min_records = json.at("min_records");
    split.store_hash = json.at("store");
    if (digits.size() != json.at("records").get<size_t>() ||
        digits.find_first_not_of("0123") != std::string::npos)
      return Error{ErrorCode::kCorrupt, path, "is cut off or damaged"};
    for (char c : digits) split.parts.push_back(static_cast<Part>(c - '0'));
    return split;
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kCorrupt, path, std::string("is a damaged split: ") + error.what()};
  }
}

}  // namespace tensorsmith::learn
