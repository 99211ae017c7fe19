// Schedule steps as number vectors, for models that read the steps and nothing else: TLP (Zhai et al.,
// ASPLOS 2023, section 4), one vector a step: its type one-hot, then all its integer parameters in order.
#pragma once

#include <variant>
#include <vector>

#include "sched/step.h"

namespace tensorsmith::learn::net {

inline constexpr int kStepTypes = static_cast<int>(std::variant_size_v<sched::Step>);

struct StepOptions {
  int max_steps = 64;  // a longer trace is cropped
  int numbers = 12;    // parameters a step; more are cropped, fewer padded with 0
  // sign(x) log2(1 + |x|) of each parameter: tile lengths of 8 and 16 are then as far apart as 512 and 1024.
  bool log_numbers = true;

  int width() const { return kStepTypes + numbers; }
};

// Appends width() numbers a step; returns the number of steps. The default program has no steps: it gets one
// vector of zeros, so that every program has something to be read.
int encode_steps(const sched::Trace& trace, const StepOptions& options, std::vector<float>& out);

}  // namespace tensorsmith::learn::net
