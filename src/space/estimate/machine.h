// A device as the estimate sees it: the values of its file, converted to cycles.
#pragma once

#include <cstdint>

#include "ir/expr.h"
#include "sched/matrix_units.h"
#include "space/estimate/constants.h"
#include "space/estimate/gpu_machine.h"
#include "target/target.h"

namespace tensorsmith::space {

// Size of the smallest pages. Prefetchers do not cross them, and the offset in a page indexes L1.
inline constexpr double kPageBytes = 4096;

struct Machine {
  target::DeviceKind kind = target::DeviceKind::kCpu;
  GpuMachine gpu;  // of a GPU; the members below describe CPUs
  int64_t vector_bytes = 1;
  int registers = 1;
  bool masked_memory = false;  // a masked vector access costs as much as a whole one
  double fma_per_cycle = 1;
  // Instructions that add a dot4 or dot2 of two vectors to a third vector; more than 1 if emulated.
  double dot4_operations = 1, dot4_narrow_operations = 1, dot2_operations = 1, dot2_i16_operations = 1;
  bool multiplies_bytes = false;  // one instruction computes a dot4
  sched::MatrixUnits matrix;
  double loads_per_cycle = 1, issue_per_cycle = 1;
  // Instructions per product that is added to a sum, and per broadcast of an element to all lanes
  // besides its load. There are more on processors without FMA and where an instruction overwrites
  // one of its operands.
  double product_instructions = 1, broadcast_instructions = 0;
  double fma_latency = 1, dot2_latency = 1;
  double reorder_buffer = 1;  // instructions
  double seconds_per_cycle = 1e-9;
  // Cache sizes from inner to outer, L3 as the share of one core; then the bytes per cycle that
  // each cache receives from the next outer level.
  double l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  double l2_bytes_per_cycle = 1, l3_bytes_per_cycle = 1, memory_bytes_per_cycle = 1;
  double line_bytes = 1, l2_ways = 1;
  double tlb_bytes = 0;     // memory that the second-level TLB covers
  double fork_seconds = 0;  // time to start and join a parallel loop

  // `constants` must outlive the machine.
  static Machine of(const target::Device& device, const Constants& constants);
  const Constants& fitted() const { return *constants_; }
  double operations_of(ir::Intrinsic dot) const {
    if (dot == ir::Intrinsic::kDot2I16) return dot2_i16_operations;
    if (dot == ir::Intrinsic::kDot4Narrow) return dot4_narrow_operations;
    return dot == ir::Intrinsic::kDot4 ? dot4_operations : dot2_operations;
  }
  int64_t lanes(int element_bytes) const {
    return vector_bytes / element_bytes > 0 ? vector_bytes / element_bytes : 1;
  }
  double fork_cycles() const { return fork_seconds / seconds_per_cycle; }

 private:
  const Constants* constants_ = nullptr;
};

}  // namespace tensorsmith::space
