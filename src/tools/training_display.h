// The control of a training, which the commands that train share, and its progress on stderr.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "learn/training.h"

namespace tensorsmith::tools {

// Returns the control of a training that `command` describes. An interrupt ends it, and only process 0 keeps
// the checkpoint.
learn::TrainingControl training_control(const learn::Processes& processes, uint64_t seed, int threads,
                                        std::string command, const std::string& checkpoint);

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
