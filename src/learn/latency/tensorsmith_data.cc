#include "learn/latency/tensorsmith_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>

#include "base/rng.h"
#include "base/statistics.h"
#include "learn/latency/resource_fit.h"

namespace tensorsmith::learn {

namespace {

using feature::ProgramKind;
using feature::WorkloadStructure;

// A structure has few factors, so using more records of it per device than this changes nothing.
constexpr size_t kFactorRecords = 6000;
constexpr size_t kLeastFactorRecords = 20;
// Ridge for the factors of all devices. It is larger because few devices cannot separate resources
// whose costs differ on the next device.
constexpr double kCommonRidge = 0.03;
// Ridge towards a prior times the number of tasks. Chosen on draws of 20 tasks other than the
// reported ones.
constexpr double kPriorTasks = 10;

// Returns the factors of the device, else of all devices; empty if no device knows the structure.
std::vector<double> factors_before(const ResourceFactors& factors, WorkloadStructure structure,
                                   const std::string& device) {
  std::vector<double> scratch;
  const auto* found = factors.find(structure, device, scratch);
  return found != nullptr ? *found : std::vector<double>();
}

// Returns rows of resource seconds / measured seconds.
std::vector<double> relative_rows(const KindData& data, std::span<const size_t> chosen) {
  std::vector<double> out;
  for (const size_t i : chosen) {
    const float* from = data.values.data() + i * static_cast<size_t>(data.resources + data.columns);
    for (int j = 0; j < data.resources; ++j) out.push_back(static_cast<double>(from[j]) / data.seconds[i]);
  }
  return out;
}

using Groups = std::map<std::pair<uint8_t, uint32_t>, std::vector<size_t>>;  // by (structure, device)

// Ridge that pulls the factors of a structure towards those of all structures. Chosen between 1 and
// 10 on the fast programs of a Zen 4, predicted with factors of an Emerald Rapids
// (docs/decisions/015-latency-model.md): the share of the programs' time that is
// predicted wrong is 15.5 % with 1, 13.0 % with 10, and 12.5 % if structures have no factors of
// their own.
constexpr double kStructureRidge = 10;

// Resources that records of a single core with its data in caches do not exercise. Unless the
// records use them, their factor has the prior 1: they take their nominal time.
constexpr std::string_view kAtLeastNamed[] = {"from_memory", "to_memory", "parallel_starts"};

std::vector<double> prior_of_all(ProgramKind kind, const KindData& data, const Groups& groups) {
  const feature::Schema& resources = feature::summary_schema(kind).resources;
  std::vector<double> out(resources.columns.size(), 0);
  for (const std::string_view name : kAtLeastNamed) {
    const size_t c = resources.find(name).value();
    const bool shown = std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
      return std::any_of(group.second.begin(), group.second.end(), [&](size_t i) {
        return data.values[i * static_cast<size_t>(data.resources + data.columns) + c] > 0;
      });
    });
    out[c] = shown ? 0 : 1;
  }
  return out;
}

// Fits one set of factors per structure to all devices together, with equal weights for the
// devices. (In the fit over all structures, a structure on a device weighs as much as it has programs.)
// In programs compiled by Tensorsmith the cost of an instruction does not depend on the structure,
// and the tasks of one structure always show some instructions together. For these programs, the
// factors of a structure are therefore pulled towards those of all structures, and structures
// without programs use the latter.
void fit_common(ResourceFactors& factors, ProgramKind kind, const KindData& data, const Groups& groups) {
  // Fits one structure, or all structures together if `structure` is negative.
  const auto fit = [&](int structure, std::span<const double> prior, double ridge) {
    std::vector<size_t> chosen;
    std::vector<double> weights;
    for (const auto& [key, members] : groups) {
      if (structure >= 0 && key.first != structure) continue;
      chosen.insert(chosen.end(), members.begin(), members.end());
      for (const double w : task_weights(data, members))
        weights.push_back(structure < 0 ? w : w / static_cast<double>(members.size()));
    }
    const double mean =
        std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
    for (double& w : weights) w /= mean;
    return fit_factors(relative_rows(data, chosen), weights, data.resources, prior, ridge);
  };
  const bool pooled = kind == ProgramKind::kCpuNests;
  const std::vector<double> all = pooled && !groups.empty()
                                      ? fit(-1, prior_of_all(kind, data, groups), kCommonRidge)
                                      : std::vector<double>();
  for (int s = 0; s < feature::kWorkloadStructures; ++s) {
    const bool shown =
        std::any_of(groups.begin(), groups.end(), [&](const auto& group) { return group.first.first == s; });
    if (!shown && all.empty()) continue;
    factors.entries.push_back({static_cast<WorkloadStructure>(s), "",
                               shown ? fit(s, all, pooled ? kStructureRidge : kCommonRidge) : all});
  }
}

}  // namespace

SummarizedProgram KindData::program(ProgramKind kind, size_t i) const {
  SummarizedProgram out;
  const float* from = values.data() + i * static_cast<size_t>(resources + columns);
  out.summary.kind = kind;
  out.summary.roofline_seconds = roofline[i];
  out.summary.resources.assign(from, from + resources);
  out.summary.columns.assign(from + resources, from + resources + columns);
  out.structure = static_cast<feature::WorkloadStructure>(structure[i]);
  return out;
}

Result<AllData> gather_summaries(const TrainingData& data, std::span<const int64_t> records) {
  AllData out;
  QueryBatch batch(*data.store, data.devices, {.leaves = true, .trace = true});
  AccessCache accesses;
  for (const int64_t record : records) {
    const Store::Entry entry = data.store->entry(record);
    if (entry.failed() || entry.leaves == 0 || !(entry.mean_seconds > 0)) continue;
    TS_ASSIGN_OR_RETURN(const auto queries, batch.make({&record, 1}));
    const ProgramQuery& query = queries[0];
    const feature::WorkloadAccess& access = accesses.of(*query.workload);
    const auto summary = feature::summarize_program(access, *query.leaves, *query.trace, *query.device);
    KindData& kind = out[static_cast<size_t>(summary.kind)];
    kind.resources = static_cast<int>(summary.resources.size());
    kind.columns = static_cast<int>(summary.columns.size());
    for (const double seconds : summary.resources) kind.values.push_back(static_cast<float>(seconds));
    kind.values.insert(kind.values.end(), summary.columns.begin(), summary.columns.end());
    kind.seconds.push_back(entry.mean_seconds);
    kind.roofline.push_back(summary.roofline_seconds);
    kind.workload.push_back(entry.workload);
    kind.device.push_back(entry.device);
    kind.structure.push_back(static_cast<uint8_t>(summary.structure));
  }
  return out;
}

std::vector<double> task_weights(const KindData& data, std::span<const size_t> chosen) {
  std::map<std::pair<uint32_t, uint32_t>, double> count;
  for (const size_t i : chosen) ++count[{data.workload[i], data.device[i]}];
  std::vector<double> out;
  double sum = 0;
  for (const size_t i : chosen) {
    out.push_back(1 / std::sqrt(count[{data.workload[i], data.device[i]}]));
    sum += out.back();
  }
  for (double& w : out) w *= static_cast<double>(out.size()) / sum;
  return out;
}

std::vector<int> fold_numbers(const KindData& data, int folds, uint64_t seed) {
  std::map<uint8_t, std::set<uint32_t>> workloads;
  for (size_t i = 0; i < data.size(); ++i) workloads[data.structure[i]].insert(data.workload[i]);
  Rng rng(seed);
  std::map<uint32_t, int> fold_of;
  int next = 0;
  for (const auto& [structure, present] : workloads) {
    std::vector<uint32_t> order(present.begin(), present.end());
    rng.shuffle(order);
    for (const uint32_t workload : order) fold_of[workload] = next++ % folds;
  }
  std::vector<int> out;
  for (const uint32_t workload : data.workload) out.push_back(fold_of[workload]);
  return out;
}

DeviceScales fit_resources(TensorsmithModel& model, ProgramKind kind, const KindData& data,
                           std::span<const size_t> chosen, const TrainingData& source, uint64_t seed,
                           bool goes_on) {
  Groups groups;
  for (const size_t i : chosen) groups[{data.structure[i], data.device[i]}].push_back(i);
  DeviceScales scales;
  Rng rng(seed);
  ResourceFactors& factors = model.kinds[static_cast<size_t>(kind)].factors;
  std::map<std::pair<uint8_t, uint32_t>, std::set<uint32_t>> all_tasks;
  std::erase_if(groups, [](const auto& group) { return group.second.size() < kLeastFactorRecords; });
  for (auto& [key, members] : groups) {
    for (const size_t i : members) all_tasks[key].insert(data.workload[i]);
    rng.shuffle(members);
    members.resize(std::min(members.size(), kFactorRecords));
  }
  if (!goes_on) fit_common(factors, kind, data, groups);
  for (const auto& [key, members] : groups) {
    const std::set<uint32_t>& tasks = all_tasks[key];
    const std::vector<double> rows = relative_rows(data, members);
    const std::string& device = source.devices[key.second]->name;
    const auto structure = static_cast<WorkloadStructure>(key.first);
    std::vector<double> prior;
    if (goes_on || kind == ProgramKind::kCpuNests)
      prior = factors_before(factors, structure, goes_on ? device : "");
    double ridge = kFactorRidge;
    if (!prior.empty()) {
      const double scale = factor_scale(rows, prior);
      for (double& x : prior) x *= scale;
      if (goes_on) scales[key.second].push_back(std::log(scale));
      ridge = std::max(ridge, kPriorTasks / static_cast<double>(tasks.size()));
    }
    std::erase_if(factors.entries,
                  [&](const auto& e) { return e.structure == structure && e.device == device; });
    factors.entries.push_back(
        {structure, device, fit_factors(rows, task_weights(data, members), data.resources, prior, ridge)});
  }
  return scales;
}

void complete_resources(TensorsmithModel& model,
                        const std::array<DeviceScales, feature::kProgramKinds>& scales,
                        const TrainingData& source) {
  DeviceScales all;
  for (const DeviceScales& kind : scales) {
    for (const auto& [device, list] : kind) all[device].insert(all[device].end(), list.begin(), list.end());
  }
  for (size_t kind = 0; kind < scales.size(); ++kind) {
    ResourceFactors& factors = model.kinds[kind].factors;
    for (const auto& [number, anywhere] : all) {
      const auto here = scales[kind].find(number);
      const double scale = std::exp(median(here != scales[kind].end() ? here->second : anywhere));
      const std::string& device = source.devices[number]->name;
      for (int s = 0; s < feature::kWorkloadStructures; ++s) {
        const auto structure = static_cast<WorkloadStructure>(s);
        if (std::any_of(factors.entries.begin(), factors.entries.end(),
                        [&](const auto& e) { return e.structure == structure && e.device == device; }))
          continue;
        std::vector<double> mean = factors_before(factors, structure, device);
        if (mean.empty()) continue;
        for (double& x : mean) x *= scale;
        factors.entries.push_back({structure, device, std::move(mean)});
      }
    }
  }
}

}  // namespace tensorsmith::learn
