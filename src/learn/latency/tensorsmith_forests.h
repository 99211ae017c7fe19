// The fits of the forests in a training of Tensorsmith's own latency model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "learn/gbt/pack_sum.h"
#include "learn/training.h"

namespace tensorsmith::learn {

// Fits the forests of a training one after the other. A training that was stopped takes those that
// it had finished from the checkpoint.
class ForestFits {
 public:
  // training: the hash of training_hash(). steps: number of forests.
  ForestFits(const TrainingControl& control, std::string training, int steps)
      : control_(control), training_(std::move(training)), steps_(steps) {}
  Status read_checkpoint();
  // Returns the next forest. member: its name in TrainingProgress. watched: programs that are not
  // trained on, for the validation curve.
  Result<Forest> next(const PackSumData& rows, const PackSumData& watched, const std::string& member,
                      PackSumOptions options);
  bool draws_curves() const { return control_.progress && control_.validation_curves; }

 private:
  Status write_checkpoint() const;

  const TrainingControl& control_;
  std::string training_;
  int steps_ = 0, next_ = 0;
  std::vector<Forest> forests_;  // finished, as in the checkpoint
};

}  // namespace tensorsmith::learn
