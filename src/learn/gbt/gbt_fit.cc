#include "learn/gbt/gbt_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

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

Result<PackSumFit> fit_gbt(std::span<const MeasuredProgram> programs, const GbtOptions& options) {
  return fit_gbt(programs, relative_speeds(programs), options);
}

Result<PackSumFit> fit_gbt(std::span<const MeasuredProgram> programs, std::span<const float> labels,
                           const GbtOptions& options) {
  const std::vector<float> speeds = relative_speeds(programs);
  PackSumData data;
  data.width = feature::kPerStoreWidth;
  data.column_name = [](size_t c) { return feature::kPerStoreColumns[c].name(); };
  for (size_t p = 0; p < programs.size(); ++p) {
    const float weight = options.weight_by_label ? std::max<float>(speeds[p], options.min_weight) : 1.0F;
    data.add(programs[p].program.rows->values, labels[p], weight * static_cast<float>(programs[p].weight));
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

std::vector<double> sum_rows(const Forest& forest, std::span<const ProgramQuery> programs) {
  // Evaluates the rows of several programs together; a single program has too few to fill the
  // pipeline.
  constexpr size_t kRows = 1024;
  const size_t width = forest.width();
  std::vector<double> sums(programs.size(), 0);
  std::vector<float> rows, predicted;
  size_t begin = 0;
  while (begin < programs.size()) {
    rows.clear();
    size_t end = begin;
    for (; end < programs.size() && rows.size() < kRows * width; ++end) {
      const auto& values = programs[end].rows->values;
      rows.insert(rows.end(), values.begin(), values.end());
    }
    predicted.resize(rows.size() / width);
    forest.predict(rows, predicted);
    size_t row = 0;
    for (size_t p = begin; p < end; ++p) {
      float sum = 0;
      for (int r = 0; r < programs[p].rows->rows; ++r) sum += predicted[row++];
      sums[p] = sum;
    }
    begin = end;
  }
  return sums;
}

}  // namespace tensorsmith::learn
