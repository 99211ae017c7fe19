#include "learn/latency/tensorsmith_data.h"

#include <cmath>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "learn/latency/queries.h"
#include "record/disturbance.h"

namespace tensorsmith::learn {

feature::ProgramSummary KindData::program(size_t i) const {
  feature::ProgramSummary out;
  const float* from = row(i);
  out.kind = kind;
  out.structure = structure[i];
  out.roofline_seconds = roofline[i];
  out.resources.assign(from, from + resources);
  out.columns.assign(from + resources, from + resources + columns);
  return out;
}

std::vector<feature::ProgramSummary> KindData::programs(std::span<const size_t> chosen) const {
  std::vector<feature::ProgramSummary> out;
  for (const size_t i : chosen) out.push_back(program(i));
  return out;
}

Result<AllData> gather_summaries(const TrainingData& data, std::span<const int64_t> records) {
  AllData out;
  for (const auto kind : kAllProgramKinds) out[kind].kind = kind;
  QueryBatch batch(*data.store, data.devices, {.leaves = true, .trace = true});
  QuerySummarizer summarizer;
  for (const int64_t record : records) {
    const Store::Entry entry = data.store->entry(record);
    if (entry.failed() || entry.leaves == 0 || !(entry.mean_seconds > 0)) continue;
    TS_ASSIGN_OR_RETURN(const auto queries, batch.make({&record, 1}));
    const auto summary = summarizer.summarize(queries[0]);
    KindData& kind = out[summary.kind];
    kind.resources = summary.resources.size();
    kind.columns = summary.columns.size();
    for (const double seconds : summary.resources) kind.values.push_back(static_cast<float>(seconds));
    kind.values.insert(kind.values.end(), summary.columns.begin(), summary.columns.end());
    kind.seconds.push_back(entry.mean_seconds);
    kind.trust.push_back(record::trust(entry.disturbance));
    kind.roofline.push_back(summary.roofline_seconds);
    kind.workload.push_back(entry.workload);
    kind.device.push_back(entry.device);
    kind.structure.push_back(summary.structure);
  }
  return out;
}

std::vector<size_t> all_programs(const KindData& data) {
  std::vector<size_t> out(data.size());
  std::iota(out.begin(), out.end(), size_t{0});
  return out;
}

std::map<uint32_t, std::vector<size_t>> by_device(const ChosenPrograms& programs) {
  std::map<uint32_t, std::vector<size_t>> out;
  for (const size_t i : programs.chosen) out[programs.data.device[i]].push_back(i);
  return out;
}

std::vector<double> task_weights(const ChosenPrograms& programs) {
  const auto& [data, chosen] = programs;
  std::map<std::pair<uint32_t, uint32_t>, double> count;
  for (const size_t i : chosen) ++count[{data.workload[i], data.device[i]}];
  std::vector<double> out;
  double sum = 0;
  for (const size_t i : chosen) {
    out.push_back(data.trust[i] / std::sqrt(count[{data.workload[i], data.device[i]}]));
    sum += out.back();
  }
  for (double& w : out) w *= out.size() / sum;
  return out;
}

std::vector<int> fold_numbers(const KindData& data, int folds, uint64_t seed) {
  std::map<feature::WorkloadStructure, std::set<uint32_t>> workloads;
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

}  // namespace tensorsmith::learn
