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
// ir::verify and reads and writes in range (ir::verify_in_bounds proves it but for a few indices of fused
// loops whose tiles do not line up). Errors name the stage.
//
//  - kPeel cuts the outermost loop of a split: full tiles without guards, then the tail with the loops inside
//  cut to what
//    remains. Where that loop is fused, parallel or split again, a branch inside it chooses. A nest is
//    doubled three times at most; further tails are guarded. A vectorized loop is never cut in two, but may
//    get shorter.
//  - A guard stands at the outermost loop that decides it.
//  - The init of a reduction is a nest of its own over the spatial loops from Stage::init_at (or the
//  outermost reduce
//    loop) inwards. kArgMax / kArgMin start with the largest index, which loses every tie.
//  - An attached stage's tensor holds its region only and is allocated at the attach point; a root stage's is
//  global
//    and allocated around its uses.
Result<LoweredProgram> lower(const sched::Schedule& schedule, std::string name = "kernel");

// Copies a logical row-major tensor into a layout, padding with zeros. source and destination hold whole
// elements of element_bytes; destination has the product of the layout's extents.
void pack(const sched::Layout& layout, const std::vector<int64_t>& logical_shape, int element_bytes,
          const void* source, void* destination);

}  // namespace tensorsmith::lower
