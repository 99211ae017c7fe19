#include "learn/latency/tensorsmith_base.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string_view>

#include "base/rng.h"
#include "base/statistics.h"
#include "learn/latency/resource_fit.h"
#include "learn/latency/tensorsmith_file.h"

namespace tensorsmith::learn {

namespace {

using feature::ProgramKind;
using feature::WorkloadStructure;

constexpr double kLeastBase = 1e-8;  // seconds of a kernel with a handful of values
// A structure has few factors, so using more records of it per device than this changes nothing.
constexpr size_t kFactorRecords = 6000;
constexpr size_t kLeastFactorRecords = 20;
// Ridge for the factors of all devices. It is larger because few devices cannot separate resources
// whose costs differ on the next device.
constexpr double kCommonRidge = 0.03;
// Ridge towards a prior times the number of tasks. Chosen on draws of 20 tasks other than the
// reported ones.
constexpr double kPriorTasks = 10;
// Ridge that pulls the factors of a structure towards those of all structures. Chosen between 1 and
// 10 on the fast programs of a Zen 4, predicted with factors of an Emerald Rapids
// (docs/decisions/015-latency-model.md): the share of the programs' time that is
// predicted wrong is 15.5 % with 1, 13.0 % with 10, and 12.5 % if structures have no factors of
// their own.
constexpr double kStructureRidge = 10;
// Resources that records of a single core with its data in caches do not exercise. Unless the
// records use them, their factor has the prior 1: they take their nominal time.
constexpr std::string_view kAtLeastNamed[] = {"from_memory", "to_memory", "parallel_starts"};

using StructureOnDevice = std::pair<WorkloadStructure, uint32_t>;  // number of the device
using Groups = std::map<StructureOnDevice, std::vector<size_t>>;

// Returns rows of resource seconds / measured seconds.
std::vector<double> relative_rows(const ChosenPrograms& programs) {
  const auto& [data, chosen] = programs;
  std::vector<double> out;
  for (const size_t i : chosen) {
    for (size_t j = 0; j < data.resources; ++j) out.push_back(double{data.row(i)[j]} / data.seconds[i]);
  }
  return out;
}

std::vector<double> prior_of_all(const KindData& data, const Groups& groups) {
  const feature::Schema& resources = feature::summary_schema(data.kind).resources;
  std::vector<double> out(resources.columns.size(), 0);
  for (const std::string_view name : kAtLeastNamed) {
    const size_t c = resources.find(name).value();
    const bool shown = std::ranges::any_of(groups, [&](const auto& group) {
      return std::ranges::any_of(group.second, [&](size_t i) { return data.row(i)[c] > 0; });
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
void fit_common(TensorsmithBase& base, const KindData& data, const Groups& groups) {
  // Fits one structure, or all structures together without one.
  const auto fit = [&](std::optional<WorkloadStructure> structure, std::span<const double> prior,
                       double ridge) {
    std::vector<size_t> chosen;
    std::vector<double> weights;
    for (const auto& [key, members] : groups) {
      if (structure && key.first != *structure) continue;
      chosen.insert(chosen.end(), members.begin(), members.end());
      for (const double w : task_weights({data, members}))
        weights.push_back(structure ? w / members.size() : w);
    }
    const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / weights.size();
    for (double& w : weights) w /= mean;
    return fit_factors(relative_rows({data, chosen}), weights, data.resources, prior, ridge);
  };
  const bool pooled = data.kind == ProgramKind::kCpuNests;
  const std::vector<double> all = pooled && !groups.empty()
                                      ? fit(std::nullopt, prior_of_all(data, groups), kCommonRidge)
                                      : std::vector<double>();
  for (const WorkloadStructure s : kAllStructures) {
    const bool shown = std::ranges::any_of(groups, [&](const auto& group) { return group.first.first == s; });
    if (!shown && all.empty()) continue;
    base.set(s, "", shown ? fit(s, all, pooled ? kStructureRidge : kCommonRidge) : all);
  }
}

}  // namespace

const std::vector<double>* TensorsmithBase::fitted(WorkloadStructure structure,
                                                   const std::string& device) const {
  for (const Entry& entry : entries_) {
    if (entry.structure == structure && entry.device == device) return &entry.factors;
  }
  return nullptr;
}

const std::vector<double>* TensorsmithBase::find(WorkloadStructure structure, const std::string& device,
                                                 std::vector<double>& scratch) const {
  if (const auto* own = fitted(structure, device)) return own;
  if (const auto* common = fitted(structure, "")) return common;
  // The factors of another structure say little, and their sum can be wrong by any factor. If no
  // device knows the structure, the roofline is closer.
  double count = 0;
  for (const Entry& entry : entries_) {
    if (entry.structure != structure) continue;
    if (count == 0) scratch.assign(entry.factors.size(), 0);
    for (size_t i = 0; i < entry.factors.size(); ++i) scratch[i] += entry.factors[i];
    ++count;
  }
  if (count == 0) return nullptr;
  for (double& x : scratch) x /= count;
  return &scratch;
}

double TensorsmithBase::seconds(const feature::ProgramSummary& program, const std::string& device) const {
  if (formula == BaseFormula::kNone) return 1;
  if (formula == BaseFormula::kRoofline) return program.roofline_seconds;
  std::vector<double> scratch;
  const auto* factors = find(program.structure, device, scratch);
  if (factors == nullptr) return program.roofline_seconds;
  double sum = 0;
  for (size_t i = 0; i < program.resources.size(); ++i) sum += program.resources[i] * (*factors)[i];
  return std::max(sum, kLeastBase);
}

std::vector<double> TensorsmithBase::factors(WorkloadStructure structure, const std::string& device) const {
  std::vector<double> scratch;
  const auto* found = find(structure, device, scratch);
  return found != nullptr ? *found : std::vector<double>();
}

bool TensorsmithBase::knows_structure(WorkloadStructure structure) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.structure == structure; });
}

bool TensorsmithBase::knows_device(const std::string& device) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.device == device; });
}

void TensorsmithBase::set(WorkloadStructure structure, const std::string& device,
                          std::vector<double> factors) {
  std::erase_if(entries_, [&](const Entry& e) { return e.structure == structure && e.device == device; });
  entries_.push_back({structure, device, std::move(factors)});
}

DeviceScales TensorsmithBase::fit(const ChosenPrograms& programs, const TrainingData& source, uint64_t seed,
                                  bool goes_on) {
  const KindData& data = programs.data;
  Groups groups;
  for (const size_t i : programs.chosen) groups[{data.structure[i], data.device[i]}].push_back(i);
  DeviceScales scales;
  Rng rng(seed);
  std::map<StructureOnDevice, std::set<uint32_t>> all_tasks;
  std::erase_if(groups, [](const auto& group) { return group.second.size() < kLeastFactorRecords; });
  for (auto& [key, members] : groups) {
    for (const size_t i : members) all_tasks[key].insert(data.workload[i]);
    rng.shuffle(members);
    members.resize(std::min(members.size(), kFactorRecords));
  }
  if (!goes_on) fit_common(*this, data, groups);
  for (const auto& [key, members] : groups) {
    const auto& [structure, number] = key;
    const ChosenPrograms chosen{data, members};
    const std::vector<double> rows = relative_rows(chosen);
    const std::string& device = source.devices[number]->name;
    std::vector<double> prior;
    if (goes_on || data.kind == ProgramKind::kCpuNests) prior = factors(structure, goes_on ? device : "");
    double ridge = kFactorRidge;
    if (!prior.empty()) {
      const double scale = factor_scale(rows, prior);
      for (double& x : prior) x *= scale;
      if (goes_on) scales[number].push_back(std::log(scale));
      ridge = std::max(ridge, kPriorTasks / all_tasks[key].size());
    }
    set(structure, device, fit_factors(rows, task_weights(chosen), data.resources, prior, ridge));
  }
  return scales;
}

void TensorsmithBase::complete(const DeviceScales& here, const DeviceScales& anywhere,
                               const TrainingData& source) {
  for (const auto& [number, all] : anywhere) {
    const auto own = here.find(number);
    const double scale = std::exp(median(own != here.end() ? own->second : all));
    const std::string& device = source.devices[number]->name;
    for (const WorkloadStructure structure : kAllStructures) {
      if (fitted(structure, device) != nullptr) continue;
      std::vector<double> common = factors(structure, device);
      if (common.empty()) continue;
      for (double& x : common) x *= scale;
      set(structure, device, std::move(common));
    }
  }
}

nlohmann::json TensorsmithBase::to_json() const {
  nlohmann::json out = nlohmann::json::array();
  for (const Entry& entry : entries_)
    out.push_back({{"structure", entry.structure}, {"device", entry.device}, {"factors", entry.factors}});
  return out;
}

Status TensorsmithBase::read(const nlohmann::json& json, size_t width) {
  for (const auto& entry : json) {
    TS_ASSIGN_OR_RETURN(const auto structure, structure_of(entry));
    TS_ASSIGN_OR_RETURN(auto factors, finite_numbers(entry.at("factors"), width));
    entries_.push_back({structure, entry.at("device"), std::move(factors)});
  }
  return {};
}

}  // namespace tensorsmith::learn
