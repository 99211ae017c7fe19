// Boosted trees whose rows add up: a program is a few rows, its prediction is the sum of its rows'
// predictions (TVM's pack-sum, auto_scheduler/cost_model/xgb_model.py). XGBoost's headers stay in
// pack_sum.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/gbt/forest.h"

namespace tensorsmith::learn {

// Rows of programs and what is to be predicted for each program.
struct PackSumData {
  int width = 0;
  std::function<std::string(size_t)> column_name;  // for errors
  std::vector<float> values;                       // row-major
  std::vector<size_t> begin = {0};                 // by program: its first row; programs + 1
  std::vector<float> labels, weights;              // by program

  size_t programs() const { return labels.size(); }
  // One more program; rows: a multiple of width values.
  void add(std::span<const float> rows, float label, float weight);
};

// A training that stands between two rounds.
struct PackSumState {
  std::vector<uint8_t> booster;  // XGBoost's own format; empty: nothing is done yet
  int rounds = 0;                // done
  int best_rounds = 0;
  double best_loss = 0;  // on the validation data
};

// Of a program's prediction p and label y; the training minimizes the weighted sum.
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
  double lambda = 1;             // weight of the leaves' squares
  double row_share = 1;          // of the programs' rows that a tree sees
  double node_column_share = 1;  // of the columns that a node may split on
  int rounds = 300;
  int max_bins = 256;  // of the histogram method; 0 = exact splits
  int threads = 1;
  uint64_t seed = 0;
  int early_stop = 0;  // rounds without a better loss on the validation data; 0: all rounds
  bool validation_chooses =
      true;  // false: the validation data are only looked at; all rounds are made and kept
  PackSumState resume;
  // After each round: rounds done, weighted mean of squared errors, or of |exp(p - y) - 1| (validation: NaN
  // where there is none).
  std::function<void(int, double, double)> progress;
  std::function<bool()> stop;                             // true: kCancelled, after a call of checkpoint
  std::function<Status(const PackSumState&)> checkpoint;  // every 50 rounds
};

struct PackSumFit {
  Forest forest;  // of the best rounds on the validation data, or of all
  // XGBoost's own prediction of each training row by all rounds.
  std::vector<float> row_predictions;
};
// validation without programs: there is none. kInvalidArgument where there is nothing to train on or a value
// is not finite (named by program and column); kCorrupt where options.resume is not what a checkpoint was
// given.
Result<PackSumFit> fit_pack_sum(PackSumData train, PackSumData validation, const PackSumOptions& options);

}  // namespace tensorsmith::learn
