// Boosted trees that learn during a search: TVM's labels and weights over per-store rows.
#pragma once

#include <span>

#include "learn/cost_model.h"
#include "learn/gbt/pack_sum.h"

namespace tensorsmith::learn {

// The defaults are TVM's settings (auto_scheduler/cost_model/xgb_model.py), for training once on much data.
struct GbtOptions {
  int max_depth = 10;
  double gamma = 0.001;
  double min_child_weight = 0;
  double eta = 0.2;
  int rounds = 300;
  int max_bins = 256;  // of the histogram method; 0 = exact splits
  // A program's weight in training is its label, but at least min_weight: otherwise failed programs, whose
  // label is 0, would teach nothing.
  bool weight_by_label = true;
  double min_weight = 0.05;
  int threads = 1;
  uint64_t seed = 0;

  // For retraining between the rounds of a search: a few thousand programs in a fraction of a second.
  static GbtOptions online() {
    GbtOptions options;
    options.max_depth = 6;
    options.eta = 0.3;
    options.rounds = 40;
    options.max_bins = 64;
    return options;
  }
};

// Programs of one workload and device are a group. labels: by program, what the trees add up to; without
// them the relative speeds. Errors: kInvalidArgument for no programs, no rows, or features that are not
// finite.
Result<PackSumFit> fit_gbt(std::span<const MeasuredProgram> programs, const GbtOptions& options);
Result<PackSumFit> fit_gbt(std::span<const MeasuredProgram> programs, std::span<const float> labels,
                           const GbtOptions& options);

// y = the fastest seconds of its group / seconds; 0 for failed programs (+inf).
std::vector<float> relative_speeds(std::span<const double> seconds, std::span<const int> groups);
// The same where a group is a workload on a device.
std::vector<float> relative_speeds(std::span<const MeasuredProgram> programs);

// By program: the sum over its rows of the trees' predictions.
std::vector<double> sum_rows(const Forest& forest, std::span<const ProgramQuery> programs);

}  // namespace tensorsmith::learn
