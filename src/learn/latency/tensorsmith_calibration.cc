#include "learn/latency/tensorsmith_calibration.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/statistics.h"
#include "learn/latency/tensorsmith_file.h"

namespace tensorsmith::learn {

namespace {

using feature::WorkloadStructure;
using Json = nlohmann::json;

// Least number of records for a structure to have its own scale, which would be noise with fewer.
constexpr size_t kLeastRecords = 30;
// A value further than this factor from the median is treated as a disturbed measurement, or as an
// error that no factor can correct.
constexpr double kOutlier = 2;

// Returns -log of the mean of measured / predicted, with outliers clamped to kOutlier around the
// median. errors: log(predicted / measured), not empty.
double mean_shift(std::span<const double> errors) {
  const double center = std::exp(-median({errors.begin(), errors.end()}));
  double sum = 0;
  for (const double e : errors) sum += std::clamp(std::exp(-e), center / kOutlier, center * kOutlier);
  return -std::log(sum / errors.size());
}

// Computes all numbers of an ErrorScale from logarithmic errors, which must not be empty. `shift` is the one
// with the lowest mean percentage error, `mean_shift` the one that makes the mean correct; both are
// multiplied by `share`. The others are half widths of intervals around `shift` that contain a share of the
// errors: log_sigma 68.27 %, log_90 90 % and log_95 95.45 %.
ErrorScale error_scale(std::vector<double> errors, double share) {
  ErrorScale best;
  double lowest = INFINITY;
  for (int step = -10; step <= 20; ++step) {
    const double shift = 0.02 * step;
    double sum = 0;
    for (const double e : errors) sum += std::abs(std::expm1(e - shift));
    if (sum < lowest) {
      lowest = sum;
      best.shift = shift;
    }
  }
  best.shift *= share;
  best.mean_shift = share * mean_shift(errors);
  for (double& e : errors) e = std::abs(e - best.shift);
  std::sort(errors.begin(), errors.end());
  const auto at = [&](double q) { return errors[static_cast<size_t>(q * errors.size())]; };
  best.log_sigma = at(0.6827);
  best.log_90 = at(0.90);
  best.log_95 = at(0.9545);
  return best;
}

}  // namespace

ErrorScale TensorsmithCalibration::scale(WorkloadStructure structure, const std::string& device) const {
  const auto it = scales_.find({structure, device});
  if (it != scales_.end()) return it->second;
  ErrorScale out;
  for (const auto& [key, value] : scales_) out.log_sigma = std::max(out.log_sigma, value.log_sigma);
  return out;
}

void TensorsmithCalibration::fit(const ErrorsByDevice& errors, const TrainingData& source, size_t least_tasks,
                                 double shift_tasks) {
  for (const auto& [device, by_structure] : errors) {
    std::vector<double> whole;
    for (const auto& [structure, list] : by_structure)
      whole.insert(whole.end(), list.errors.begin(), list.errors.end());
    for (const auto& [structure, list] : by_structure) {
      const bool enough = list.errors.size() >= kLeastRecords && list.workloads.size() >= least_tasks;
      if (!enough && whole.size() < kLeastRecords) continue;
      const double n = list.workloads.size();
      scales_[{structure, source.devices[device]->name}] =
          error_scale(enough ? list.errors : whole, n / (n + shift_tasks));
    }
  }
}

bool TensorsmithCalibration::covers_size(WorkloadStructure structure, double flops) const {
  const auto range = sizes_.find(structure);
  return range == sizes_.end() || (flops >= range->second.first && flops <= range->second.second);
}

void TensorsmithCalibration::note_size(WorkloadStructure structure, double flops) {
  auto& [low, high] = sizes_.try_emplace(structure, flops, flops).first->second;
  low = std::min(low, flops);
  high = std::max(high, flops);
}

void TensorsmithCalibration::write(feature::ProgramKind kind, Json& scales, Json& sizes) const {
  for (const auto& [structure, range] : sizes_)
    sizes.push_back({{"kind", kind}, {"structure", structure}, {"low", range.first}, {"high", range.second}});
  for (const auto& [key, value] : scales_)
    scales.push_back({{"kind", kind},
                      {"structure", key.first},
                      {"device", key.second},
                      {"shift", value.shift},
                      {"mean_shift", value.mean_shift},
                      {"log_sigma", value.log_sigma},
                      {"log_90", value.log_90},
                      {"log_95", value.log_95}});
}

Status TensorsmithCalibration::read_scale(const Json& item) {
  // Older files have no log_90 and log_95.
  const ErrorScale scale{item.at("shift"), item.at("log_sigma"), item.at("mean_shift"),
                         item.value("log_90", 0.0), item.value("log_95", 0.0)};
  const auto width = [](double value) { return value >= 0 && value < 100; };
  if (!(std::abs(scale.shift) < 100) || !(std::abs(scale.mean_shift) < 100) || !width(scale.log_sigma) ||
      !width(scale.log_90) || !width(scale.log_95))
    return corrupt_physics("calibration is out of range");
  TS_ASSIGN_OR_RETURN(const auto structure, structure_of(item));
  scales_[{structure, item.at("device")}] = scale;
  return {};
}

Status TensorsmithCalibration::read_size(const Json& item) {
  TS_ASSIGN_OR_RETURN(const auto structure, structure_of(item));
  sizes_[structure] = {item.at("low"), item.at("high")};
  return {};
}

}  // namespace tensorsmith::learn
