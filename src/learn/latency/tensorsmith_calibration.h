// The calibration of Tensorsmith's own latency model (learn/latency/tensorsmith_model.h).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "learn/latency/tensorsmith_data.h"

namespace tensorsmith::learn {

// Errors of predictions, log(predicted / measured) without a shift, and the numbers of the
// workloads.
struct PredictionErrors {
  std::vector<double> errors;
  std::set<uint32_t> workloads;
};
// By device number, then by structure.
using ErrorsByDevice = std::map<uint32_t, std::map<feature::WorkloadStructure, PredictionErrors>>;

// The numbers are logarithms. There are two shifts: where the spread is large, the mean percentage
// error is lowest below the median, while a sum over programs needs the mean.
struct ErrorScale {
  double shift = 0, log_sigma = 0;
  double mean_shift = 0;          // used instead of `shift` for Prediction::mean_seconds
  double log_90 = 0, log_95 = 0;  // as in Prediction
};

// Shifts the predictions of programs of one kind and states their errors, for each structure and
// device, as measured on programs whose workloads the fit has not seen.
class TensorsmithCalibration {
 public:
  // Without measured errors, as on a new device, there is no shift, and the deviation is the largest
  // of the kind.
  ErrorScale scale(feature::WorkloadStructure structure, const std::string& device) const;
  // least_tasks: number of workloads that a structure needs for errors of its own; with fewer, it
  // uses those of all programs on the device. shift_tasks: a structure with n workloads gets
  // n / (n + shift_tasks) of its shift.
  void fit(const ErrorsByDevice& errors, const TrainingData& source, size_t least_tasks, double shift_tasks);

  // Returns whether the training part has smaller and larger workloads of the structure, or none at
  // all. flops: StoredWorkload::flops.
  bool covers_size(feature::WorkloadStructure structure, double flops) const;
  void note_size(feature::WorkloadStructure structure, double flops);

  // Add an object for each entry, and read one; reading throws JSON exceptions.
  void write(feature::ProgramKind kind, nlohmann::json& scales, nlohmann::json& sizes) const;
  Status read_scale(const nlohmann::json& item);
  Status read_size(const nlohmann::json& item);

 private:
  std::map<std::pair<feature::WorkloadStructure, std::string>, ErrorScale> scales_;
  // Operations of the smallest and the largest training workload.
  std::map<feature::WorkloadStructure, std::pair<double, double>> sizes_;
};

}  // namespace tensorsmith::learn
