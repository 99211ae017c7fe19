// A device as the estimate sees it: figures of its file, in cycles.
#pragma once

#include <cstdint>

#include "ir/expr.h"
#include "sched/matrix_units.h"
#include "space/estimate/constants.h"
#include "space/estimate/gpu_machine.h"
#include "target/target.h"

namespace tensorsmith::space {

// The smallest pages, which prefetchers do not cross and whose offset indexes L1.
inline constexpr double kPageBytes = 4096;

struct Machine {
  target::DeviceKind kind = target::DeviceKind::kCpu;
  GpuMachine gpu;  // of a GPU; what follows is of CPUs
  int64_t vector_bytes = 1;
  int registers = 1;
  bool masked_memory = false;  // vectors of any length are loaded and stored at the price of whole ones
  double fma_per_cycle = 1;
  // Instructions that add dot4 or dot2 of two vectors to a third.
  double dot4_operations = 1, dot4_narrow_operations = 1, dot2_operations = 1, dot2_i16_operations = 1;
  bool multiplies_bytes = false;  // by one such instruction of dot4
  sched::MatrixUnits matrix;
  double loads_per_cycle = 1, issue_per_cycle = 1;
  // Instructions of a product that is added, and of an element in all lanes beside its load: more where there are no
  // FMAs and an instruction overwrites one of its operands.
  double product_instructions = 1, broadcast_instructions = 0;
  double fma_latency = 1, dot2_latency = 1;
  double reorder_buffer = 1;  // instructions
  double seconds_per_cycle = 1e-9;
  // Cache sizes, inner to outer, L3 as a core's part; the bytes a cycle that come from the next level outside.
  double l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  double l2_bytes_per_cycle = 1, l3_bytes_per_cycle = 1, memory_bytes_per_cycle = 1;
  double line_bytes = 1, l2_ways = 1;
  double tlb_bytes = 0;     // that the second level of the TLB holds
  double fork_seconds = 0;  // starting and joining a parallel loop

  // constants: outlives the machine.
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
