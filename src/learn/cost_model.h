// Cost models: batch and pure, features in, scores out. Training is separate.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "feature/per_store.h"

namespace tensorsmith::learn {

// A program as the cost models see it.
struct Sample {
  const feature::FeatureMatrix* features = nullptr;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Higher is faster; comparable within one task. Thread-safe.
  virtual std::vector<float> predict(std::span<const Sample> programs) const = 0;
  virtual std::string name() const = 0;
};

struct TrainingProgram {
  const feature::FeatureMatrix* features = nullptr;
  int task = 0;        // labels are normalized within a task
  double seconds = 0;  // +inf for failed programs
};

// Models that learn from measurements, also online during a search.
class Trainer {
 public:
  virtual ~Trainer() = default;
  virtual Result<std::unique_ptr<CostModel>> train(std::span<const TrainingProgram> programs) = 0;
};

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
// XGBoost over per-store rows; a program's score is the sum of its rows' predictions (pack-sum). The label is
// the task's smallest seconds / seconds. Errors: kInvalidArgument for no programs, no rows, or features that
// are not finite.
std::unique_ptr<Trainer> make_gbt_trainer(const GbtOptions& options);
// Saves a model made by a gbt trainer (any other: kInvalidArgument); the file is replaced at once or not at
// all.
Status save_gbt_model(const CostModel& model, const std::string& path);
// kCorrupt for a damaged file, kMismatch for another schema or version.
Result<std::unique_ptr<CostModel>> load_gbt_model(const std::string& path);
// Scores by hash of the features and a seed: the baseline every model must beat.
std::unique_ptr<CostModel> make_random_model(uint64_t seed);

}  // namespace tensorsmith::learn
