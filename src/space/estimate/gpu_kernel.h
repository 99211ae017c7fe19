// What a kernel takes of a GPU and how long it runs. Plans say what a block does; what that costs stands here.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_machine.h"

namespace tensorsmith::space {

struct GpuBlock {
  int64_t threads = 1;
  int64_t vthreads = 1;
  int64_t shared_bytes = 0;
  double registers = 0;  // of a thread
};

// kResourceExhausted with the reason where the device cannot run such a block, or only with lanes that idle.
// points: that the whole kernel computes; fewer than a warp has lanes cannot fill one.
Status check_block(const GpuMachine& machine, const GpuBlock& block, const std::string& stage, double points);

struct GpuKernel {
  double blocks = 1;
  GpuBlock block;
  // Of a block: instructions of its warps.
  double products = 0;       // and other arithmetic
  double values = 0;         // operands that come from shared memory
  double bank_waits = 0;     // cycles that these wait for each other's banks
  double steps = 0;          // of the innermost loop that has a counter
  GpuAccess memory;          // accesses of device memory
  double moved = 0;          // elements that are copied into shared memory, in whole warps
  double guarded = 0;        // of these, elements that may be padding
  double store_sectors = 0;  // that stores touch, warp by warp
  double waits = 0;          // times that a block waits for device memory with nothing else to do
  // Values of a thread that are needed at the same time, where products are not waited for.
  double live_values = 0;
  // Where copies into shared memory run ahead, by no register, and products wait for nothing but what these say.
  struct Ahead {
    bool used = false;
    double loads = 0, load_cycles = 0;  // of values from shared memory, and the cycles of its banks
    double iterations = 0;              // of loops, warp by warp
    double thread_products = 1;         // of a thread, which need not wait for each other
    double body_products = 1;           // of a thread, without a loop
    // Columns of a thread's sums where these are in pairs of registers (codegen/gpu/register_tile.h); 0: they are not.
    double pair_columns = 0;
  };
  Ahead ahead;
  // Of the kernel: bytes of device memory, those that every program moves and those that come again.
  double bytes_once = 0, bytes_again = 0;
  double words = 1;  // of 4 bytes that a lane's access of device memory has
};

double gpu_seconds(const GpuMachine& machine, const GpuKernel& kernel);

// Blocks that a multiprocessor holds at a time.
double resident_blocks(const GpuMachine& machine, const GpuBlock& block);

}  // namespace tensorsmith::space
