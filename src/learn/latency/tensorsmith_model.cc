#include "learn/latency/tensorsmith_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "ir/text.h"
#include "learn/gbt/forest_file.h"
#include "learn/latency/held_out.h"

namespace tensorsmith::learn {

namespace {

using feature::ProgramKind;
using feature::WorkloadStructure;
using Json = nlohmann::json;

constexpr double kLeastBase = 1e-8;           // seconds of a kernel with a handful of values
constexpr double kLeastResourceShare = 1e-6;  // least share of a resource in the base
constexpr double kLeastGeneralShare = 1e-4;
// Part of the known devices' corrections that is applied to an unknown device. Chosen by leaving
// out each of three GPUs.
constexpr double kTransferred = 0.7;
// Weight of a device's own prediction, as opposed to the common one, if training has seen
// `workloads` workloads of the structure on it. A fit to one or two workloads can go wrong: of four
// draws of 5 tasks on an MI50, one was off by 69 %, while the common prediction was off by 32 %.
// The constants were chosen on four draws of 5, 10 and 20 tasks on three GPUs; other values than 1
// and 3 made little difference.
double own_share(int workloads) { return (workloads + 1.0) / (workloads + 3.0); }

Error corrupt_member(const std::string& what) { return {ErrorCode::kCorrupt, "", what}; }

std::string member_name(int kind, const char* sort, size_t member) {
  return std::string(feature::to_string(static_cast<ProgramKind>(kind))) + "." + sort +
         std::to_string(member);
}

// Reads `count` finite numbers that are not negative from a JSON array.
Result<std::vector<double>> finite_numbers(const Json& json, size_t count) {
  std::vector<double> out;
  if (!json.is_array() || json.size() != count)
    return corrupt_member("the model's physics has a list of the wrong length");
  for (const Json& item : json) {
    if (!item.is_number() || !std::isfinite(item.get<double>()) || item.get<double>() < 0)
      return corrupt_member("the model's physics contains a value that is not a finite number of at least 0");
    out.push_back(item.get<double>());
  }
  return out;
}

// Callers must catch JSON exceptions. width: of the rows that the trees read.
Status read_kind(ModelFile& file, const Json& item, ProgramKind kind, int width, TensorsmithKind& out) {
  const feature::SummarySchema& schema = feature::summary_schema(kind);
  // A kind without training programs contains nothing that a change of the columns could
  // invalidate.
  if (item.at("factors").empty() && item.at("members") == 0 && item.at("rank_members") == 0) return {};
  if (item.at("resources") != schema.resources.names() || item.at("columns") != schema.columns.names())
    return Error{ErrorCode::kMismatch, "",
                 "was trained on program summaries with other columns; train the model again"};
  for (const Json& entry : item.at("factors")) {
    const int structure = entry.at("structure");
    if (structure < 0 || structure >= feature::kWorkloadStructures)
      return corrupt_member("the model's physics is out of range");
    TS_ASSIGN_OR_RETURN(auto factors, finite_numbers(entry.at("factors"), schema.resources.columns.size()));
    out.factors.entries.push_back(
        {static_cast<WorkloadStructure>(structure), entry.at("device"), std::move(factors)});
  }
  const auto read_members = [&](const char* count, const char* sort, std::vector<Forest>& members) -> Status {
    const size_t size = item.at(count);
    for (size_t m = 0; m < size; ++m) {
      TS_ASSIGN_OR_RETURN(Forest forest,
                          read_forest(file, member_name(static_cast<int>(kind), sort, m), width));
      members.push_back(std::move(forest));
    }
    return {};
  };
  TS_RETURN_IF_ERROR(read_members("members", "", out.members));
  TS_RETURN_IF_ERROR(read_members("rank_members", "rank", out.rank_members));
  // Older files have no "devices".
  const Json devices = item.value("devices", Json::array());
  for (size_t d = 0; d < devices.size(); ++d) {
    DeviceForest device{devices[d].at("device"), {devices[d].at("arch"), {}}, {}};
    TS_ASSIGN_OR_RETURN(device.traits.values,
                        finite_numbers(devices[d].at("traits"), traits_of({}).values.size()));
    TS_ASSIGN_OR_RETURN(device.forest,
                        read_forest(file, member_name(static_cast<int>(kind), "device", d), width));
    out.devices.push_back(std::move(device));
  }
  for (const Json& entry : item.value("shown", Json::array())) {
    const int structure = entry.at("structure"), workloads = entry.at("workloads");
    const double shift = entry.at("shift");
    if (structure < 0 || structure >= feature::kWorkloadStructures || workloads < 0 ||
        !(std::abs(shift) < 100))
      return corrupt_member("the model's data about its training devices are out of range");
    out.shown[entry.at("device")][static_cast<WorkloadStructure>(structure)] = {workloads, shift};
  }
  return {};
}

// Callers must catch JSON exceptions.
Status read_calibrations(const Json& items, std::map<CalibrationKey, Calibration>& out) {
  for (const Json& item : items) {
    // Older files have no log_90 and log_95.
    const Calibration calibration{item.at("shift"), item.at("log_sigma"), item.at("mean_shift"),
                                  item.value("log_90", 0.0), item.value("log_95", 0.0)};
    const auto width = [](double value) { return value >= 0 && value < 100; };
    if (!(std::abs(calibration.shift) < 100) || !(std::abs(calibration.mean_shift) < 100) ||
        !width(calibration.log_sigma) || !width(calibration.log_90) || !width(calibration.log_95))
      return corrupt_member("the model's calibration is out of range");
    const int kind = item.at("kind"), structure = item.at("structure");
    if (kind < 0 || kind >= feature::kProgramKinds || structure < 0 ||
        structure >= feature::kWorkloadStructures)
      return corrupt_member("the model's calibration is for a kind or structure that does not exist");
    out[{static_cast<ProgramKind>(kind), static_cast<WorkloadStructure>(structure), item.at("device")}] =
        calibration;
  }
  return {};
}

}  // namespace

const feature::WorkloadAccess& AccessCache::of(const StoredWorkload& workload) {
  const auto it = known_.find(&workload);
  if (it != known_.end()) return it->second;
  feature::WorkloadAccess access;
  access.flops = workload.flops;
  if (auto parsed = ir::parse_workload(workload.text); parsed.ok()) {
    access = feature::analyze_accesses(*parsed, workload.flops);
    if (workload.foreign_keys.empty())
      access.workload = std::make_shared<const ir::Workload>(std::move(parsed).value());
  }
  return known_.emplace(&workload, std::move(access)).first->second;
}

const std::vector<double>* ResourceFactors::find(WorkloadStructure structure, const std::string& device,
                                                 std::vector<double>& scratch) const {
  for (const Entry& entry : entries) {
    if (entry.structure == structure && entry.device == device) return &entry.factors;
  }
  for (const Entry& entry : entries) {
    if (entry.structure == structure && entry.device.empty()) return &entry.factors;
  }
  // The factors of another structure say little, and their sum can be wrong by any factor. If no
  // device knows the structure, the roofline is closer.
  double count = 0;
  for (const Entry& entry : entries) {
    if (entry.structure != structure) continue;
    if (count == 0) scratch.assign(entry.factors.size(), 0);
    for (size_t i = 0; i < entry.factors.size(); ++i) scratch[i] += entry.factors[i];
    ++count;
  }
  if (count == 0) return nullptr;
  for (double& x : scratch) x /= count;
  return &scratch;
}

bool ResourceFactors::knows_device(const std::string& device) const {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.device == device; });
}

bool TensorsmithModel::is_new_device(ProgramKind kind, const std::string& device) const {
  const TensorsmithKind& known = kinds[static_cast<size_t>(kind)];
  return base == TensorsmithBase::kResources && !known.devices.empty() && !known.factors.knows_device(device);
}

bool TensorsmithModel::knows(ProgramKind kind, WorkloadStructure structure) const {
  const TensorsmithKind& known = kinds[static_cast<size_t>(kind)];
  // Without fitted factors, the base does not depend on the structure.
  if (base != TensorsmithBase::kResources) return !known.members.empty() || !known.rank_members.empty();
  return std::any_of(known.factors.entries.begin(), known.factors.entries.end(),
                     [&](const auto& entry) { return entry.structure == structure; });
}

double TensorsmithModel::base_seconds(const feature::ProgramSummary& summary, WorkloadStructure structure,
                                      const std::string& device) const {
  if (base == TensorsmithBase::kNone) return 1;
  if (base == TensorsmithBase::kRoofline) return summary.roofline_seconds;
  std::vector<double> scratch;
  const auto* factors = kinds[static_cast<size_t>(summary.kind)].factors.find(structure, device, scratch);
  if (factors == nullptr) return summary.roofline_seconds;
  double sum = 0;
  for (size_t i = 0; i < summary.resources.size(); ++i) sum += summary.resources[i] * (*factors)[i];
  return std::max(sum, kLeastBase);
}

int TensorsmithModel::width(ProgramKind kind) {
  const feature::SummarySchema& schema = feature::summary_schema(kind);
  return static_cast<int>(schema.resources.columns.size() + schema.columns.columns.size()) + 1;
}

std::string TensorsmithModel::column_name(ProgramKind kind, size_t column) {
  const feature::SummarySchema& schema = feature::summary_schema(kind);
  for (const feature::Schema& part : {schema.resources, schema.columns}) {
    if (column < part.columns.size()) return part.columns[column].name();
    column -= part.columns.size();
  }
  return "base_over_roofline";
}

void TensorsmithModel::append_row(const SummarizedProgram& program, std::vector<float>& out) const {
  const feature::ProgramSummary& summary = program.summary;
  for (const double seconds : summary.resources)
    out.push_back(static_cast<float>(std::log2(std::max(seconds / program.base, kLeastResourceShare))));
  const auto columns = feature::summary_schema(summary.kind).columns.columns;
  for (size_t c = 0; c < summary.columns.size(); ++c) {
    const bool hidden =
        (!device_columns && columns[c].of_device) || (base != TensorsmithBase::kNone && columns[c].of_size);
    out.push_back(hidden ? 0 : summary.columns[c]);
  }
  out.push_back(static_cast<float>(std::log2(program.base / summary.roofline_seconds)));
}

void TensorsmithModel::append_general_row(const SummarizedProgram& program, std::vector<float>& out) const {
  const feature::ProgramSummary& summary = program.summary;
  for (const double seconds : summary.resources)
    out.push_back(static_cast<float>(std::log2(std::max(seconds / program.base, kLeastGeneralShare))));
  const auto columns = feature::summary_schema(summary.kind).columns.columns;
  for (size_t c = 0; c < summary.columns.size(); ++c)
    out.push_back(columns[c].of_device || columns[c].of_size ? 0 : summary.columns[c]);
  out.push_back(static_cast<float>(std::log2(program.base / summary.roofline_seconds)));
}

namespace {

// Weighted mean and spread of the predictions of several forests for the same rows.
class MeanAndSpread {
 public:
  explicit MeanAndSpread(size_t count) : means_(count, 0.0), squares_(count, 0.0) {}
  // share: weight of these values in the mean.
  void add(std::span<const float> values, double share) {
    shares_ += share;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<double>(values[i]);
      means_[i] += share * value;
      squares_[i] += share * value * value;
    }
  }
  void add_mean_to(std::span<double> out, double scale) const {
    for (size_t i = 0; i < out.size(); ++i) out[i] += scale * means_[i];
  }
  // Does nothing if `out` is empty.
  void set_spread(std::span<double> out, double scale) const {
    for (size_t i = 0; i < out.size() && shares_ > 0; ++i) {
      const double mean = means_[i] / shares_;
      out[i] = scale * std::sqrt(std::max(squares_[i] / shares_ - mean * mean, 0.0));
    }
  }

 private:
  std::vector<double> means_, squares_;
  double shares_ = 0;
};

}  // namespace

void TensorsmithModel::add_device_trees(ProgramKind kind, const target::Device& device,
                                        std::span<const float> rows, std::span<double> out,
                                        std::span<double> disagreement) const {
  std::vector<const DeviceForest*> known;
  std::vector<DeviceTraits> traits;
  for (const DeviceForest& other : kinds[static_cast<size_t>(kind)].devices) {
    if (other.device == device.name) continue;
    known.push_back(&other);
    traits.push_back(other.traits);
  }
  const std::vector<double> weights = similarity_weights(traits_of(device), traits);
  std::vector<float> values(out.size());
  MeanAndSpread all(out.size());
  for (size_t d = 0; d < known.size(); ++d) {
    if (weights[d] == 0) continue;
    known[d]->forest.predict(rows, values);
    all.add(values, weights[d]);
  }
  all.add_mean_to(out, kTransferred);
  all.set_spread(disagreement, kTransferred);
}

void TensorsmithModel::add_trees(ProgramKind kind, std::span<const float> rows, std::span<double> out,
                                 std::span<double> disagreement, std::span<double> ranks) const {
  const TensorsmithKind& known = kinds[static_cast<size_t>(kind)];
  const double rank_share = known.rank_members.empty() ? 0 : known.members.empty() ? 1 : rank_weight;
  std::vector<float> values(out.size());
  MeanAndSpread seconds(out.size()), all(out.size());
  const auto add = [&](const std::vector<Forest>& forests, double share, bool tells_seconds) {
    for (const Forest& forest : forests) {
      const auto count = static_cast<double>(forests.size());
      if (!tells_seconds && (share == 0 || (disagreement.empty() && ranks.empty()))) continue;
      forest.predict(rows, values);
      if (tells_seconds) seconds.add(values, 1 / count);
      all.add(values, share / count);
    }
  };
  add(known.members, 1 - rank_share, true);
  add(known.rank_members, rank_share, known.members.empty());
  seconds.add_mean_to(out, 1);
  all.add_mean_to(ranks, 1);
  all.set_spread(disagreement, 1);
}

void TensorsmithModel::common_log_seconds(ProgramKind kind, const target::Device& device,
                                          std::span<SummarizedProgram> programs, std::span<double> out,
                                          std::span<double> disagreement) const {
  std::vector<float> rows;
  for (size_t i = 0; i < programs.size(); ++i) {
    programs[i].base = base_seconds(programs[i].summary, programs[i].structure, "");
    append_general_row(programs[i], rows);
    out[i] = std::log(programs[i].base);
  }
  add_device_trees(kind, device, rows, out, disagreement);
}

void TensorsmithModel::log_seconds(ProgramKind kind, const target::Device& device,
                                   std::span<SummarizedProgram> programs, std::span<double> out,
                                   std::span<double> disagreement, std::span<double> ranks) const {
  if (is_new_device(kind, device.name)) {
    common_log_seconds(kind, device, programs, out, disagreement);
    std::copy(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(ranks.size()), ranks.begin());
    return;
  }
  const TensorsmithKind& known = kinds[static_cast<size_t>(kind)];
  const auto shown = known.shown.find(device.name);
  const bool mixes =
      base == TensorsmithBase::kResources && !known.devices.empty() && shown != known.shown.end();
  std::vector<double> common(mixes ? programs.size() : 0);
  if (mixes) common_log_seconds(kind, device, programs, common);
  std::vector<float> rows;
  rows.reserve(programs.size() * static_cast<size_t>(width(kind)));
  for (size_t i = 0; i < programs.size(); ++i) {
    programs[i].base = base_seconds(programs[i].summary, programs[i].structure, device.name);
    append_row(programs[i], rows);
    out[i] = std::log(programs[i].base);
    if (!ranks.empty()) ranks[i] = out[i];
  }
  add_trees(kind, rows, out, disagreement, ranks);
  for (size_t i = 0; i < common.size(); ++i) {
    const auto tasks = shown->second.find(programs[i].structure);
    const ShownTasks seen = tasks != shown->second.end() ? tasks->second : ShownTasks();
    const double own = own_share(seen.workloads);
    const double others = (1 - own) * (common[i] + seen.shift);
    out[i] = own * out[i] + others;
    if (!ranks.empty()) ranks[i] = own * ranks[i] + others;
  }
}

// Without a calibration, as on a new device, returns no shift and the largest deviation of the
// kind.
Calibration TensorsmithModel::calibration_of(ProgramKind kind, WorkloadStructure structure,
                                             const std::string& device) const {
  const auto it = calibrations.find({kind, structure, device});
  if (it != calibrations.end()) return it->second;
  Calibration out;
  for (const auto& [key, value] : calibrations) {
    if (key.kind == kind) out.log_sigma = std::max(out.log_sigma, value.log_sigma);
  }
  return out;
}

Result<std::vector<Prediction>> TensorsmithModel::predict(std::span<const ProgramQuery> queries) const {
  AccessCache accesses;
  struct Part {
    std::vector<SummarizedProgram> programs;
    std::vector<size_t> places;
  };
  std::map<std::pair<ProgramKind, const target::Device*>, Part> parts;
  std::vector<Prediction> out(queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    const ProgramQuery& query = queries[i];
    if (query.summary == nullptr && query.trace == nullptr)
      return Error{ErrorCode::kInvalidArgument, "query " + std::to_string(i),
                   "has neither a summary nor a schedule trace, one of which this model needs"};
    SummarizedProgram program;
    program.summary = query.summary != nullptr
                          ? *query.summary
                          : feature::summarize_program(accesses.of(*query.workload), *query.leaves,
                                                       *query.trace, *query.device);
    const double flops = query.workload->flops;
    program.structure = program.summary.structure;
    const ProgramKind kind = program.summary.kind;
    if (!knows(kind, program.structure) && base != TensorsmithBase::kNone) {
      out[i].seconds = program.summary.roofline_seconds;
      out[i].unseen.kind = true;
      continue;
    }
    if (const auto range = sizes.find({kind, program.structure}); range != sizes.end())
      out[i].unseen.size = flops < range->second.first || flops > range->second.second;
    Part& part = parts[{kind, query.device}];
    if (part.programs.empty()) part.programs.reserve(queries.size() - i);
    part.programs.push_back(std::move(program));
    part.places.push_back(i);
  }
  for (auto& [key, part] : parts) {
    const auto& [kind, device] = key;
    std::vector<double> logs(part.places.size(), 0), disagreement(logs), ranks(logs);
    log_seconds(kind, *device, part.programs, logs, disagreement, ranks);
    for (size_t j = 0; j < logs.size(); ++j) {
      Prediction& predicted = out[part.places[j]];
      const Calibration calibration = calibration_of(kind, part.programs[j].structure, device->name);
      predicted.seconds = std::exp(logs[j] - calibration.shift);
      predicted.mean_seconds = std::exp(logs[j] - calibration.mean_shift);
      predicted.ranking_seconds = std::exp(ranks[j] - calibration.shift);
      predicted.log_sigma = calibration.log_sigma;
      predicted.log_90 = calibration.log_90;
      predicted.log_95 = calibration.log_95;
      predicted.disagreement = disagreement[j];
    }
  }
  UnseenEffects unseen(model_card);
  for (size_t i = 0; i < queries.size(); ++i) unseen.apply(*queries[i].device, out[i]);
  return out;
}

Status TensorsmithModel::save(const std::string& path) const {
  ModelFile file;
  file.card = model_card;
  Json physics = {{"summary_version", feature::kSummaryVersion},
                  {"base", static_cast<int>(base)},
                  {"device_columns", device_columns},
                  {"rank_weight", rank_weight},
                  {"kinds", Json::array()},
                  {"sizes", Json::array()},
                  {"calibration", Json::array()}};
  for (int k = 0; k < feature::kProgramKinds; ++k) {
    const TensorsmithKind& kind = kinds[static_cast<size_t>(k)];
    Json factors = Json::array();
    for (const auto& entry : kind.factors.entries) {
      factors.push_back({{"structure", static_cast<int>(entry.structure)},
                         {"device", entry.device},
                         {"factors", entry.factors}});
    }
    Json shown = Json::array();
    for (const auto& [device, structures] : kind.shown) {
      for (const auto& [structure, tasks] : structures)
        shown.push_back({{"device", device},
                         {"structure", static_cast<int>(structure)},
                         {"workloads", tasks.workloads},
                         {"shift", tasks.shift}});
    }
    Json devices = Json::array();
    for (size_t d = 0; d < kind.devices.size(); ++d) {
      devices.push_back({{"device", kind.devices[d].device},
                         {"arch", kind.devices[d].traits.arch},
                         {"traits", kind.devices[d].traits.values}});
      add_forest(file, member_name(k, "device", d), kind.devices[d].forest);
    }
    const auto program_kind = static_cast<ProgramKind>(k);
    physics["kinds"].push_back({{"name", feature::to_string(program_kind)},
                                {"resources", feature::summary_schema(program_kind).resources.names()},
                                {"columns", feature::summary_schema(program_kind).columns.names()},
                                {"factors", std::move(factors)},
                                {"members", kind.members.size()},
                                {"rank_members", kind.rank_members.size()},
                                {"devices", std::move(devices)},
                                {"shown", std::move(shown)}});
    for (size_t m = 0; m < kind.members.size(); ++m) add_forest(file, member_name(k, "", m), kind.members[m]);
    for (size_t m = 0; m < kind.rank_members.size(); ++m)
      add_forest(file, member_name(k, "rank", m), kind.rank_members[m]);
  }
  for (const auto& [key, range] : sizes)
    physics["sizes"].push_back({{"kind", static_cast<int>(key.first)},
                                {"structure", static_cast<int>(key.second)},
                                {"low", range.first},
                                {"high", range.second}});
  for (const auto& [key, value] : calibrations)
    physics["calibration"].push_back({{"kind", static_cast<int>(key.kind)},
                                      {"structure", static_cast<int>(key.structure)},
                                      {"device", key.device},
                                      {"shift", value.shift},
                                      {"mean_shift", value.mean_shift},
                                      {"log_sigma", value.log_sigma},
                                      {"log_90", value.log_90},
                                      {"log_95", value.log_95}});
  const std::string text = physics.dump();
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  file.add<uint8_t>("physics.json", {static_cast<int64_t>(bytes.size())}, bytes);
  return write_model_file(file, path);
}

Result<std::unique_ptr<CostModel>> TensorsmithModel::from_file(ModelFile file) {
  auto model = std::make_unique<TensorsmithModel>();
  TS_ASSIGN_OR_RETURN(const auto text, file.values<uint8_t>("physics.json", {-1}));
  const Json physics = parse_json<Json>({reinterpret_cast<const char*>(text.data()), text.size()});
  if (physics.is_discarded()) return corrupt_member("the model's physics is not JSON");
  try {
    if (physics.at("summary_version") != feature::kSummaryVersion)
      return Error{ErrorCode::kMismatch, "",
                   "was trained on another version of the program summaries; train the model again"};
    const int base = physics.at("base");
    if (base < 0 || base > static_cast<int>(TensorsmithBase::kNone) ||
        physics.at("kinds").size() != feature::kProgramKinds)
      return corrupt_member("the model's physics is out of range");
    model->base = static_cast<TensorsmithBase>(base);
    model->device_columns = physics.at("device_columns");
    model->rank_weight = physics.at("rank_weight");
    if (!(model->rank_weight >= 0 && model->rank_weight <= 1))
      return corrupt_member("the model's weight of the rank members is out of range");
    for (int k = 0; k < feature::kProgramKinds; ++k) {
      const auto place = static_cast<size_t>(k);
      TS_RETURN_IF_ERROR(read_kind(file, physics.at("kinds")[place], static_cast<ProgramKind>(k),
                                   model->width(static_cast<ProgramKind>(k)), model->kinds[place]));
    }
    TS_RETURN_IF_ERROR(read_calibrations(physics.at("calibration"), model->calibrations));
    for (const Json& item : physics.value("sizes", Json::array())) {  // older files have none
      const int kind = item.at("kind"), structure = item.at("structure");
      if (kind < 0 || kind >= feature::kProgramKinds || structure < 0 ||
          structure >= feature::kWorkloadStructures)
        return corrupt_member("the model's sizes are for a kind or structure that does not exist");
      model->sizes[{static_cast<ProgramKind>(kind), static_cast<WorkloadStructure>(structure)}] = {
          item.at("low"), item.at("high")};
    }
  } catch (const nlohmann::json::exception&) {
    return corrupt_member("the model's physics lacks an entry or has one of the wrong type");
  }
  model->model_card = std::move(file.card);
  return std::unique_ptr<CostModel>(std::move(model));
}

}  // namespace tensorsmith::learn
