// Boosted trees that are trained during a search, with TVM's labels and weights.
#pragma once

#include <span>

#include "learn/cost_model.h"
#include "learn/gbt/pack_sum.h"

namespace tensorsmith::learn {

// The defaults are TVM's settings (auto_scheduler/cost_model/xgb_model.py), for training once on
// much data.
struct GbtOptions {
  int max_depth = 10;
  double gamma = 0.001;
  double min_child_weight = 0;
  double eta = 0.2;
  int rounds = 300;
  int max_bins = 256;  // for the histogram method; 0: exact splits
  // Weights each program by its relative speed, but at least by min_weight; otherwise failed
  // programs, whose speed is 0, would have no effect. This multiplies MeasuredProgram::weight.
  bool weight_by_label = true;
  double min_weight = 0.05;
  int threads = 1;
  uint64_t seed = 0;

  // Settings for retraining between the rounds of a search: a few thousand programs in a fraction
  // of a second.
  static GbtOptions online() {
    GbtOptions options;
    options.max_depth = 6;
    options.eta = 0.3;
    options.rounds = 40;
    options.max_bins = 64;
    return options;
  }
};

// The rows that trees read of a program.
struct ForestRows {
  size_t width;  // of a row
  std::string (*column_name)(size_t column);
  void (*append)(const ProgramQuery& program, std::vector<float>& out);  // appends the program's rows
};
// One row for each store of the program. The query must have `rows`.
const ForestRows& per_store_rows();
// One row with the parts of the design space's estimate. The query must have `parts`.
const ForestRows& estimate_rows();

// Programs of one workload and device form a group. labels: for each program, the target of the
// trees' sum. Errors: kInvalidArgument if there are no programs or rows, or features are not finite.
Result<PackSumFit> fit_gbt(std::span<const MeasuredProgram> programs, const ForestRows& rows,
                           std::span<const float> labels, const GbtOptions& options);

// Returns the fastest seconds of the group / seconds for each program; 0 for failed programs
// (+inf).
std::vector<float> relative_speeds(std::span<const double> seconds, std::span<const int> groups);
// Likewise; a group is a workload on a device.
std::vector<float> relative_speeds(std::span<const MeasuredProgram> programs);

// Returns the sum of the trees' predictions over the rows of each program.
std::vector<double> sum_rows(const Forest& forest, const ForestRows& rows,
                             std::span<const ProgramQuery> programs);

}  // namespace tensorsmith::learn
