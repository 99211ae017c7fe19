// Figures of a device that the analytic model uses.
#pragma once

#include <cstdint>

#include "ir/expr.h"
#include "target/target.h"

namespace tensorsmith::space {

struct Machine {
  int64_t vector_bytes = 16;
  int registers = 16;
  bool masked_memory = false;  // vectors of any length are loaded and stored at the price of whole ones
  double fma_per_cycle = 1;
  // Instructions that add dot4 or dot2 of two vectors to a third.
  double dot4_operations = 1, dot2_operations = 1;
  double loads_per_cycle = 1.6;  // sustained, of two issued
  double issue_per_cycle = 4;
  double fma_latency = 4, dot2_latency = 6;
  double seconds_per_cycle = 1 / 2.5e9;
  // Cache sizes, inner to outer, and the bytes a cycle that come from the next level outside.
  double l1_bytes = 32 << 10, l2_bytes = 256 << 10, l3_bytes = 8 << 20;
  double l2_bytes_per_cycle = 32, l3_bytes_per_cycle = 16, memory_bytes_per_cycle = 6;
  double fork_seconds = 3e-6;  // starting and joining a parallel loop

  static Machine of(const target::Device& device);
  double operations_of(ir::Intrinsic dot) const {
    return dot == ir::Intrinsic::kDot4 ? dot4_operations : dot2_operations;
  }
  int64_t lanes(int element_bytes) const {
    return vector_bytes / element_bytes > 0 ? vector_bytes / element_bytes : 1;
  }
};

}  // namespace tensorsmith::space
