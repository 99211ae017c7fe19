// How a training goes, on stderr.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "learn/training.h"

namespace tensorsmith::tools {

// Lines on stderr, not more often than people read.
class TrainingDisplay {
 public:
  // programs: of one step of the training, for its rate.
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
