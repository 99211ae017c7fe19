// Scheduled program -> explicit loops.
#pragma once

#include <utility>
#include <vector>

#include "ir/stmt.h"
#include "sched/schedule.h"

namespace tensorsmith::lower {

struct PackedConstant {
  size_t input = 0;      // index into Program::inputs; the buffer there has the physical shape
  sched::Layout layout;  // how the logical tensor is stored
};

struct LoweredProgram {
  ir::Program
      program;  // inputs = the workload's placeholders in order (packed ones with their physical shape)
  std::vector<PackedConstant> packed;
};

// Loops, guards or peeled tails, reduction inits, allocations, physical layouts. The program passes
// ir::verify_in_bounds. Errors name the stage.
Result<LoweredProgram> lower(const sched::Schedule& schedule, std::string name = "kernel");

// Copies a logical row-major tensor into a layout, padding with zeros. source and destination hold whole
// elements of element_bytes; destination has the product of the layout's extents.
void pack(const sched::Layout& layout, const std::vector<int64_t>& logical_shape, int element_bytes,
          const void* source, void* destination);

}  // namespace tensorsmith::lower
