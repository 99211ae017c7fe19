// Shows the progress of a training on stderr.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "learn/training.h"

namespace tensorsmith::tools {

// Prints lines on stderr at a readable rate.
class TrainingDisplay {
 public:
  // programs: number of programs in one training step, for the displayed rate.
  TrainingDisplay(const Clock& clock, int64_t programs);
  ~TrainingDisplay();
  TrainingDisplay(const TrainingDisplay&) = delete;
  TrainingDisplay& operator=(const TrainingDisplay&) = delete;

  void update(const learn::TrainingProgress& p);

 private:
  const Clock& clock_;
  int64_t programs_;
  bool terminal_, drawn_ = false;
  int first_step_ = -1;
  double start_ = 0, last_ = 0;
};

}  // namespace tensorsmith::tools
