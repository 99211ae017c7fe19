// Runs a CUDA kernel's text on the host (emulator.h).
#pragma once

#include <span>
#include <vector>

#include "codegen/backend.h"
#include "lower/interpreter.h"

namespace tensorsmith::test {

struct EmulationOrder {
  bool early_copies = false;  // asynchronous copies take place at once, else as late as they may
  bool last_first = false;    // warps in the opposite order
};

struct Emulated {
  std::vector<lower::Tensor> outputs;
  long bank_conflicts = 0;  // of lines of matrices that are loaded together
  long broken_rules = 0;    // of asynchronous instructions (warpgroup_emulator.h)
};

// For each order, the program's kernels one after the other. The emitter's text for the device is compiled once.
Result<std::vector<Emulated>> emulate(const ir::Program& program, const target::Device& device,
                                      std::span<const lower::Tensor> inputs,
                                      std::span<const EmulationOrder> orders);

}  // namespace tensorsmith::test
