// Encodes schedule steps as vectors, for models that read only the steps (TLP: Zhai et al., ASPLOS
// 2023, section 4). Each step becomes one vector: its type one-hot, then all its integer parameters
// in order.
#pragma once

#include <variant>
#include <vector>

#include "sched/step.h"

namespace tensorsmith::learn::net {

inline constexpr int kStepTypes = std::variant_size_v<sched::Step>;

struct StepOptions {
  int max_steps = 64;  // longer traces are cropped
  int numbers = 12;    // parameters per step; more are cropped, fewer are padded with 0
  // Whether to use sign(x) log2(1 + |x|) of each parameter, so that tile lengths of 8 and 16 are
  // about as far apart as 512 and 1024.
  bool log_numbers = true;

  int width() const { return kStepTypes + numbers; }
};

// Appends width() numbers per step and returns the number of steps. The default program has no
// steps; it gets one vector of zeros, so that every program has an input.
int encode_steps(const sched::Trace& trace, const StepOptions& options, std::vector<float>& out);

}  // namespace tensorsmith::learn::net
