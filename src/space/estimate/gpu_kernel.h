// The resources that a GPU kernel takes and how long it runs. Plans describe the work of a block;
// its cost is computed here.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_units.h"

namespace tensorsmith::space {

struct GpuBlock {
  int64_t threads = 1;
  int64_t vthreads = 1;
  int64_t shared_bytes = 0;
  double registers = 0;  // of a thread
};

// Returns kResourceExhausted with the reason if the device cannot run such a block, or if half of
// the lanes would idle. `points`: number of points that the whole kernel computes; a kernel with
// few points may leave lanes idle.
Status check_block(const target::GpuMachine& machine, const GpuBlock& block, const std::string& stage,
                   double points);

struct GpuKernel {
  double blocks = 1;
  GpuBlock block;
  // Warp instructions and other quantities of one block.
  double products = 0;    // products and other arithmetic
  double values = 0;      // operand values that are read from shared memory
  double bank_waits = 0;  // cycles that these reads lose to bank conflicts
  double steps = 0;       // iterations of the innermost loop that is not unrolled
  GpuAccess memory;       // accesses to device memory
  double moved = 0;       // elements copied into shared memory, divided by the lanes that copy them together
  double guarded = 0;     // those of `moved` that may be padding
  double store_sectors = 0;  // sectors that stores touch, summed over the warps
  double waits = 0;          // times that a block waits for device memory with nothing else to do
  // Values that a thread needs at the same time, in registers; 0 = register pressure is ignored.
  double live_values = 0;
  // Used if copies into shared memory run ahead of the products (cp.async, without passing through
  // registers). The products then wait for nothing but what these members describe.
  struct Ahead {
    bool used = false;
    double loads = 0, load_cycles = 0;  // loads from shared memory, and cycles that their banks take
    double iterations = 0;              // of loops, summed over the warps
    double thread_products = 1;         // independent products of a thread
    double body_products = 1;           // products of a thread in the unrolled loop body
    // Columns of a thread's sums if the sums are kept in pairs of registers
    // (codegen/gpu/register_tile.h), else 0.
    double pair_columns = 0;
  };
  Ahead ahead;
  // Device memory traffic of the kernel in bytes: what every program must move, and what is read
  // again.
  double bytes_once = 0, bytes_again = 0;
  double words = 1;  // number of 4-byte words that a lane accesses in device memory at once
};

double gpu_seconds(const target::GpuMachine& machine, const GpuKernel& kernel);

// Returns the number of blocks that are resident on a multiprocessor at the same time.
double resident_blocks(const target::GpuMachine& machine, const GpuBlock& block);

}  // namespace tensorsmith::space
