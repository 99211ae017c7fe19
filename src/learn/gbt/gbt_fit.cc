#include "learn/gbt/gbt_fit.h"

#include <algorithm>
#include <cmath>
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

Result<PackSumFit> fit_gbt(std::span<const TrainingProgram> programs, const GbtOptions& options) {
  std::vector<double> seconds;
  std::vector<int> tasks;
  for (const TrainingProgram& program : programs) {
    seconds.push_back(program.seconds);
    tasks.push_back(program.task);
  }
  const std::vector<float> labels = relative_speeds(seconds, tasks);
  PackSumData data;
  data.width = feature::kPerStoreWidth;
  data.column_name = feature::per_store_column_name;
  for (size_t p = 0; p < programs.size(); ++p) {
    const float weight =
        options.weight_by_label ? std::max(labels[p], static_cast<float>(options.min_weight)) : 1.0F;
    data.add(programs[p].features->values, labels[p], weight);
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

}  // namespace tensorsmith::learn
