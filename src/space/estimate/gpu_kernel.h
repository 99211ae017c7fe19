// What a kernel takes of a GPU and how long it runs. Plans say what a block does; what that costs stands here.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "space/estimate/gpu_machine.h"

namespace tensorsmith::space {

struct GpuBlock {
  int64_t threads = 1;
  int64_t vthreads = 1;
  int64_t shared_bytes = 0;
  double registers = 32;  // of a thread
};

// kResourceExhausted with the reason where the device cannot run such a block, or only with lanes that idle.
// points: that the whole kernel computes; fewer than a warp has lanes cannot fill one.
Status check_block(const GpuMachine& machine, const GpuBlock& block, const std::string& stage, double points);

struct GpuKernel {
  double blocks = 1;
  GpuBlock block;
  // Of a block, all its threads together. Instructions are those of warps.
  double fma_instructions = 0;    // of the arithmetic units
  double other_instructions = 0;  // issued beside them: addresses, loads, loops
  double shared_cycles = 0;       // of the banks, one access of a whole warp each
  double global_accesses = 0;     // of a warp
  double l2_bytes = 0;            // sectors that come from or go to L2
  double waits = 0;               // times that a thread waits for device memory with nothing else to do
  // Of the kernel.
  double dram_bytes = 0;
  double independent = 1;  // instructions of a thread that do not wait for each other
};

double gpu_seconds(const GpuMachine& machine, const GpuKernel& kernel);

// Blocks that a multiprocessor holds at a time.
double resident_blocks(const GpuMachine& machine, const GpuBlock& block);

}  // namespace tensorsmith::space
