// Boosted trees with additive rows: a program has a few rows, and its prediction is the sum of its
// rows' predictions (TVM's pack-sum, auto_scheduler/cost_model/xgb_model.py). XGBoost's headers are
// included only in pack_sum.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/gbt/forest.h"

namespace tensorsmith::learn {

// The rows of programs, and a label for each program.
struct PackSumData {
  size_t width = 0;
  std::function<std::string(size_t)> column_name;  // for error messages
  std::vector<float> values;                       // row-major
  std::vector<size_t> begin = {0};                 // index of each program's first row; programs + 1 entries
  std::vector<float> labels, weights;              // one per program

  size_t programs() const { return labels.size(); }
  // Adds a program. rows: a multiple of `width` values.
  void add(std::span<const float> rows, float label, float weight);
};

// State of a training between two rounds.
struct PackSumState {
  std::vector<uint8_t> booster;  // in XGBoost's format; empty: not started
  int rounds = 0;                // finished rounds
  int best_rounds = 0;
  double best_loss = 0;  // on the validation data
};

// Loss for a program's prediction p and label y; training minimizes the weighted sum.
enum class PackSumLoss : uint8_t {
  kSquared,   // (p - y)^2 / 2
  kRelative,  // learn/gbt/relative_loss.h; labels are logarithms
  kHuber,     // squared up to |p - y| = 1, linear beyond (Huber 1964)
};

struct PackSumOptions {
  PackSumLoss loss = PackSumLoss::kSquared;
  int max_depth = 10;
  double gamma = 0.001;
  double min_child_weight = 0;
  double eta = 0.2;
  double lambda = 1;             // L2 regularization of the leaf values
  double row_share = 1;          // share of the rows that each tree is trained on
  double node_column_share = 1;  // share of the columns considered at each node
  int rounds = 300;
  int max_bins = 256;  // for the histogram method; 0: exact splits
  int threads = 1;
  uint64_t seed = 0;
  int early_stop = 0;              // stops after so many rounds without a better validation loss; 0: never
  bool validation_chooses = true;  // false: validation data only monitors; all rounds are kept
  PackSumState resume;
  // Called after each round with the number of finished rounds and the training and validation
  // losses: weighted mean of squared errors, or of |exp(p - y) - 1| for kRelative. NaN if there is
  // no validation data.
  std::function<void(int, double, double)> progress;
  std::function<bool()> stop;  // true: ends with kCancelled after a call of checkpoint
  std::function<Status(const PackSumState&)> checkpoint;  // every 50 rounds
};

struct PackSumFit {
  Forest forest;  // rounds up to the best on the validation data, or all
  // XGBoost's own predictions of the training rows with all rounds.
  std::vector<float> row_predictions;
};
// validation: may have no programs. kInvalidArgument if there is nothing to train on or a value is
// not finite (the error names program and column); kCorrupt if options.resume is not the state of a
// checkpoint.
Result<PackSumFit> fit_pack_sum(PackSumData train, PackSumData validation, const PackSumOptions& options);

}  // namespace tensorsmith::learn
