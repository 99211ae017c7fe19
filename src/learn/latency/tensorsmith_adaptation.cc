#include "learn/latency/tensorsmith_adaptation.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/statistics.h"
#include "learn/gbt/forest_file.h"
#include "learn/gbt/forest_mean.h"
#include "learn/latency/tensorsmith_file.h"

namespace tensorsmith::learn {

namespace {

using Json = nlohmann::json;
using feature::WorkloadStructure;

// Columns that identify the device or the size of the workload are hidden, for every base.
constexpr RowColumns kColumns{.least_share = 1e-4};
constexpr const char* kSort = "device";  // part of the names of the forests' tensors
// Part of the known devices' corrections that is applied to an unknown device. Chosen by leaving
// out each of three GPUs.
constexpr double kTransferred = 0.7;
// Weight of a device's own prediction, as opposed to the common one, if training has seen
// `workloads` workloads of the structure on it. A fit to one or two workloads can go wrong: of four
// draws of 5 tasks on an MI50, one was off by 69 %, while the common prediction was off by 32 %.
// The constants were chosen on four draws of 5, 10 and 20 tasks on three GPUs; other values than 1
// and 3 made little difference.
double own_share(int workloads) { return (workloads + 1.0) / (workloads + 3.0); }

}  // namespace

bool TensorsmithAdaptation::covers(const TensorsmithBase& base, const std::string& device) const {
  return base.formula == BaseFormula::kResources && !forests.empty() && !base.knows_device(device);
}

void TensorsmithAdaptation::log_seconds(const TensorsmithBase& base, const target::Device& device,
                                        std::span<const feature::ProgramSummary> programs,
                                        std::span<double> out, std::span<double> disagreement) const {
  std::vector<float> rows;
  for (size_t i = 0; i < programs.size(); ++i) {
    const double seconds = base.seconds(programs[i], "");
    kColumns.append_row(programs[i], seconds, rows);
    out[i] = std::log(seconds);
  }
  std::vector<const Forest*> known;
  std::vector<DeviceTraits> traits;
  for (const DeviceForest& other : forests) {
    if (other.device == device.name) continue;
    known.push_back(&other.forest);
    traits.push_back(other.traits);
  }
  const std::vector<double> weights = similarity_weights(traits_of(device), traits);
  std::vector<float> values(out.size());
  ForestMean mean(out.size());
  for (size_t d = 0; d < known.size(); ++d) {
    if (weights[d] == 0) continue;
    known[d]->predict(rows, values);
    mean.add(values, weights[d]);
  }
  mean.add_mean_to(out, kTransferred);
  mean.set_spread(disagreement, kTransferred);
}

void TensorsmithAdaptation::mix(const TensorsmithBase& base, const target::Device& device,
                                std::span<const feature::ProgramSummary> programs, std::span<double> out,
                                std::span<double> ranks) const {
  const auto tasks = shown.find(device.name);
  if (base.formula != BaseFormula::kResources || forests.empty() || tasks == shown.end()) return;
  std::vector<double> common(programs.size());
  log_seconds(base, device, programs, common);
  for (size_t i = 0; i < common.size(); ++i) {
    const auto of_structure = tasks->second.find(programs[i].structure);
    const ShownTasks seen = of_structure != tasks->second.end() ? of_structure->second : ShownTasks();
    const double own = own_share(seen.workloads);
    const double others = (1 - own) * (common[i] + seen.shift);
    out[i] = own * out[i] + others;
    if (!ranks.empty()) ranks[i] = own * ranks[i] + others;
  }
}

PackSumData TensorsmithAdaptation::training_rows(const TensorsmithBase& base,
                                                 const ChosenPrograms& programs) {
  const BaseRows rows = base_rows(base, kColumns, programs, nullptr);
  return pack_rows(programs, rows.values, rows.errors);
}

void TensorsmithAdaptation::set(DeviceForest forest) {
  std::erase_if(forests, [&](const DeviceForest& other) { return other.device == forest.device; });
  forests.push_back(std::move(forest));
}

void TensorsmithAdaptation::note_shown(const TensorsmithBase& before_base,
                                       const TensorsmithAdaptation& before, const ChosenPrograms& programs,
                                       const TrainingData& source) {
  const KindData& data = programs.data;
  // By (device, structure), then by workload.
  std::map<std::pair<uint32_t, WorkloadStructure>, std::map<uint32_t, std::vector<size_t>>> tasks;
  for (const size_t i : programs.chosen)
    tasks[{data.device[i], data.structure[i]}][data.workload[i]].push_back(i);
  for (const auto& [key, workloads] : tasks) {
    const auto& [number, structure] = key;
    const target::Device& device = *source.devices[number];
    if (!before.covers(before_base, device.name) && !shown.contains(device.name)) continue;
    double sum = 0;
    for (const auto& [workload, members] : workloads) {
      std::vector<double> logs(members.size());
      before.log_seconds(before_base, device, data.programs(members), logs);
      for (size_t j = 0; j < members.size(); ++j) logs[j] = std::log(data.seconds[members[j]]) - logs[j];
      sum += median(std::move(logs));
    }
    // Shrinkage: with a single workload, half of its error is taken as common to all workloads.
    const double n = workloads.size();
    ShownTasks& now = shown[device.name][structure];
    const double earlier = now.workloads;
    now = {static_cast<int>(earlier + n), (now.shift * (earlier + 1) + sum) / (earlier + n + 1)};
  }
}

void TensorsmithAdaptation::write(TensorFile& file, feature::ProgramKind kind, Json& item) const {
  item["devices"] = Json::array();
  for (size_t d = 0; d < forests.size(); ++d) {
    item["devices"].push_back({{"device", forests[d].device},
                               {"arch", forests[d].traits.arch},
                               {"traits", forests[d].traits.values}});
    add_forest(file, forest_name(kind, kSort, d), forests[d].forest);
  }
  item["shown"] = Json::array();
  for (const auto& [device, structures] : shown) {
    for (const auto& [structure, tasks] : structures)
      item["shown"].push_back({{"device", device},
                               {"structure", structure},
                               {"workloads", tasks.workloads},
                               {"shift", tasks.shift}});
  }
}

Status TensorsmithAdaptation::read(const TensorFile& file, feature::ProgramKind kind, const Json& item) {
  // Older files have neither "devices" nor "shown".
  const Json devices = item.value("devices", Json::array());
  TS_ASSIGN_OR_RETURN(std::vector<Forest> trees, read_forests(file, kind, kSort, devices.size()));
  for (size_t d = 0; d < devices.size(); ++d) {
    TS_ASSIGN_OR_RETURN(auto values, finite_numbers(devices[d].at("traits"), traits_of({}).values.size()));
    forests.push_back(
        {devices[d].at("device"), {devices[d].at("arch"), std::move(values)}, std::move(trees[d])});
  }
  for (const Json& entry : item.value("shown", Json::array())) {
    const int workloads = entry.at("workloads");
    const double shift = entry.at("shift");
    TS_ASSIGN_OR_RETURN(const auto structure, structure_of(entry));
    if (workloads < 0 || !(std::abs(shift) < 100))
      return corrupt_physics("data about its training devices are out of range");
    shown[entry.at("device")][structure] = {workloads, shift};
  }
  return {};
}

}  // namespace tensorsmith::learn
