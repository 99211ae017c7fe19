#include "engine/starter.h"

#include <algorithm>
#include <tuple>

#include "record/jsonl.h"
#include "search/pipeline.h"
#include "search/plausible.h"

namespace tensorsmith::engine {

Result<Starter> Starter::load(const std::string& path) {
  TS_RETURN_IF_ERROR(record::check_jsonl_file(path));
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(":memory:"));
  TS_ASSIGN_OR_RETURN([[maybe_unused]] const auto report, database->import_jsonl(path));
  TS_ASSIGN_OR_RETURN(const auto known, database->devices());
  TS_ASSIGN_OR_RETURN(const auto tasks, database->tasks());
  std::map<std::string, double> flops;
  for (const auto& task : tasks) flops[task.key] = task.flops;
  std::map<std::string, target::Device> devices;
  for (const auto& [key, device] : known) devices[key] = device;
  Starter starter;
  TS_RETURN_IF_ERROR(database->for_each([&](const record::Record& record) -> Status {
    const auto device = devices.find(record.device_key);
    if (!record.result.ok() || !record.candidate.point || device == devices.end()) return {};
    if (record.candidate.reason == record::Reason::kDefault) return {};  // every device measures its own
    const auto known_flops = flops.find(record.task_key);
    const double least =
        search::implausible_below(known_flops == flops.end() ? 0 : known_flops->second, 0, device->second);
    if (!search::is_plausible(record.result, least)) return {};
    starter.entries_[record.task_key].push_back({search::from_point(*record.candidate.point),
                                                 device->second.vector_bytes, device->second.cores,
                                                 record.result.best_estimate()});
    return {};
  }));
  return starter;
}

std::vector<space::Candidate> Starter::of(const std::string& task_key, const target::Device& device,
                                          size_t count) const {
  const auto found = entries_.find(task_key);
  if (found == entries_.end()) return {};
  std::vector<Entry> entries = found->second;
  const auto rank = [&](const Entry& e) {
    return std::tuple(e.vector_bytes != device.vector_bytes, e.cores != device.cores, e.seconds);
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const Entry& a, const Entry& b) { return rank(a) < rank(b); });
  std::vector<space::Candidate> candidates;
  for (Entry& entry : entries) {
    if (candidates.size() == count) break;
    if (std::find(candidates.begin(), candidates.end(), entry.candidate) == candidates.end())
      candidates.push_back(std::move(entry.candidate));
  }
  return candidates;
}

}  // namespace tensorsmith::engine
