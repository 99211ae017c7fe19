// A device as the estimate sees it: its figures, and what the estimate's constants add to them.
#pragma once

#include <cstdint>

#include "ir/expr.h"
#include "sched/matrix_units.h"
#include "space/estimate/constants.h"
#include "space/estimate/gpu_units.h"
#include "target/machine.h"

namespace tensorsmith::space {

// Size of the smallest pages. Prefetchers do not cross them, and the offset in a page indexes L1.
inline constexpr double kPageBytes = 4096;

struct EstimateMachine : target::CpuMachine {
  // `constants` must outlive the machine.
  EstimateMachine(const target::Device& device, const Constants& constants);

  target::DeviceKind kind;
  target::GpuMachine gpu;           // of a GPU; the other members describe CPUs
  bool masked_memory = false;       // target::has_masked_memory()
  bool dot4 = false, dot2 = false;  // target::has_dot4(), has_dot2()
  // Instructions that add a dot4 or dot2 of two vectors to a third vector; more than 1 if emulated.
  double dot4_operations = 1, dot4_narrow_operations = 1, dot2_operations = 1, dot2_i16_operations = 1;
  double dot2_latency = 1;  // cycles
  sched::MatrixUnits matrix;

  const Constants& fitted() const { return *constants_; }
  double operations_of(ir::Intrinsic dot) const {
    if (dot == ir::Intrinsic::kDot2I16) return dot2_i16_operations;
    if (dot == ir::Intrinsic::kDot4Narrow) return dot4_narrow_operations;
    return dot == ir::Intrinsic::kDot4 ? dot4_operations : dot2_operations;
  }
  // Elements of this size that a vector holds, at least 1.
  int64_t lanes(int element_bytes) const {
    return vector_bytes / element_bytes > 0 ? vector_bytes / element_bytes : 1;
  }
  double fork_cycles() const { return fork_seconds() * clock_hz; }

 private:
  const Constants* constants_;
};

}  // namespace tensorsmith::space
