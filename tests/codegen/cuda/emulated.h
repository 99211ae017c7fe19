// Runs a CUDA kernel's text on the host (emulator.h).
#pragma once

#include <span>
#include <vector>

#include "codegen/backend.h"
#include "lower/interpreter.h"

namespace tensorsmith::test {

struct EmulationOrder {
  bool early_copies = false;  // asynchronous copies happen at once; otherwise as late as possible
  bool last_first = false;    // warps run in reverse order
};

struct Emulated {
  std::vector<lower::Tensor> outputs;
  long bank_conflicts = 0;  // among lines of matrices that are loaded together
  long broken_rules = 0;    // violations by asynchronous instructions (warpgroup_emulator.h)
};

// Runs the program's kernels one after the other, once per order. The emitted text for the device
// is compiled only once.
Result<std::vector<Emulated>> emulate(const ir::Program& program, const target::Device& device,
                                      std::span<const lower::Tensor> inputs,
                                      std::span<const EmulationOrder> orders);

}  // namespace tensorsmith::test
