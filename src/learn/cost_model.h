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

struct GbtOptions {  // TenSet's / TVM's settings, see ../learn/gbt/xgboost_model.cc
  int max_depth = 10;
  double gamma = 0.001;
  double min_child_weight = 0;
  double eta = 0.2;
  int rounds = 300;
  bool weight_by_label = true;
  int threads = 1;
  uint64_t seed = 0;
};
// XGBoost over per-store rows; a program's score is the sum of its rows' predictions (pack-sum).
std::unique_ptr<Trainer> make_gbt_trainer(const GbtOptions& options);
// Scores by hash of the features and a seed: the baseline every model must beat.
std::unique_ptr<CostModel> make_random_model(uint64_t seed);

}  // namespace tensorsmith::learn
