#include "learn/gbt/gbt_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "learn/correction/estimate_columns.h"

namespace tensorsmith::learn {

std::vector<float> relative_speeds(std::span<const double> seconds, std::span<const int> groups) {
  const auto usable = [](double s) { return std::isfinite(s) && s > 0; };
  std::unordered_map<int, double> fastest;
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (!usable(seconds[i])) continue;
    const auto [it, added] = fastest.try_emplace(groups[i], seconds[i]);
    if (!added) it->second = std::min(it->second, seconds[i]);
  }
  std::vector<float> out;
  out.reserve(seconds.size());
  for (size_t i = 0; i < seconds.size(); ++i)
    out.push_back(usable(seconds[i]) ? static_cast<float>(fastest[groups[i]] / seconds[i]) : 0.0F);
  return out;
}

std::vector<float> relative_speeds(std::span<const MeasuredProgram> programs) {
  std::vector<double> seconds;
  std::vector<int> groups;
  std::map<std::pair<const StoredWorkload*, const target::Device*>, int> numbers;
  for (const MeasuredProgram& measured : programs) {
    seconds.push_back(measured.seconds);
    const std::pair group(measured.program.workload, measured.program.device);
    groups.push_back(numbers.emplace(group, numbers.size()).first->second);
  }
  return relative_speeds(seconds, groups);
}

const ForestRows& per_store_rows() {
  static constexpr ForestRows kRows = {
      feature::kPerStoreWidth, [](size_t column) { return feature::kPerStoreColumns[column].name(); },
      [](const ProgramQuery& program, std::vector<float>& out) {
        out.insert(out.end(), program.rows->values.begin(), program.rows->values.end());
      }};
  return kRows;
}

const ForestRows& estimate_rows() {
  static constexpr ForestRows kRows = {
      kEstimateColumns, [](size_t column) { return kEstimateSchema[column].name(); },
      [](const ProgramQuery& program, std::vector<float>& out) {
        const auto columns = estimate_columns(*program.parts, *program.device);
        out.insert(out.end(), columns.begin(), columns.end());
      }};
  return kRows;
}

Result<PackSumFit> fit_gbt(std::span<const MeasuredProgram> programs, const ForestRows& rows,
                           std::span<const float> labels, const GbtOptions& options) {
  const std::vector<float> speeds = relative_speeds(programs);
  PackSumData data;
  data.width = rows.width;
  data.column_name = rows.column_name;
  std::vector<float> values;
  for (size_t p = 0; p < programs.size(); ++p) {
    const float weight = options.weight_by_label ? std::max<float>(speeds[p], options.min_weight) : 1.0F;
    values.clear();
    rows.append(programs[p].program, values);
    data.add(values, labels[p], weight * static_cast<float>(programs[p].weight));
  }
  PackSumOptions fit;
  fit.max_depth = options.max_depth;
  fit.gamma = options.gamma;
  fit.min_child_weight = options.min_child_weight;
  fit.eta = options.eta;
  fit.rounds = options.rounds;
  fit.max_bins = options.max_bins;
  fit.threads = options.threads;
  fit.seed = options.seed;
  return fit_pack_sum(std::move(data), {}, fit);
}

std::vector<double> sum_rows(const Forest& forest, const ForestRows& rows,
                             std::span<const ProgramQuery> programs) {
  // Evaluates the rows of several programs together; a single program has too few to fill the
  // pipeline.
  constexpr size_t kRows = 1024;
  const size_t width = rows.width;
  std::vector<double> sums(programs.size(), 0);
  std::vector<float> values, predicted;
  std::vector<size_t> ends;  // of the rows of each program
  size_t begin = 0;
  while (begin < programs.size()) {
    values.clear();
    ends.clear();
    size_t end = begin;
    for (; end < programs.size() && values.size() < kRows * width; ++end) {
      rows.append(programs[end], values);
      ends.push_back(values.size() / width);
    }
    predicted.resize(values.size() / width);
    forest.predict(values, predicted);
    size_t row = 0;
    for (size_t p = begin; p < end; ++p) {
      float sum = 0;
      while (row < ends[p - begin]) sum += predicted[row++];
      sums[p] = sum;
    }
    begin = end;
  }
  return sums;
}

}  // namespace tensorsmith::learn
