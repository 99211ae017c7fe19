// Scheduled program -> explicit loops.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/stmt.h"
#include "lower/interpreter.h"
#include "sched/schedule.h"

namespace tensorsmith::lower {

// What is done to a constant ahead of time, when a model is compiled: it is transformed, then packed.
struct PreparedConstant {
  size_t input = 0;  // index into Program::inputs; the buffer there has the physical shape of the result
  std::shared_ptr<const ir::Workload> transform;  // of the constant, its only placeholder; null: none
  std::optional<sched::Layout> layout;            // how the tensor is stored; none: row-major
};

struct LoweredProgram {
  ir::Program
      program;  // inputs = the workload's placeholders in order (prepared ones with their physical shape)
  std::vector<PreparedConstant> prepared;
};

// Loops, guards or peeled tails, reduction inits, allocations, physical layouts. The program passes
// ir::verify and reads and writes in range (ir::verify_in_bounds proves it but for a few indices of fused
// loops whose tiles do not line up). Errors name the stage.
//
// Tails: kPeel cuts the last level of a split that can be cut: full tiles without guards, then the tail with
// the loops inside cut to what remains; loops outside may vary in length. Where the loop is fused, parallel
// or split again, a branch inside it chooses. A nest is doubled three times at most, further tails are
// guarded; a vectorized loop is never cut in two, but may get shorter. kShift needs none of
// this: its last tile is as long as the others. Nor does kOverrun, where all that is read beyond the region
// is there.
//
// Guards stand at the outermost loop that decides them. An attached stage computes its region to the end
// where everything it reads for that is there (padding of packed constants, reads under selects, attached
// producers that do the same); otherwise an attached reduction gets one nest for regions inside the tensor
// and a guarded one.
//
// Reductions: the init is a nest of its own over the spatial loops from Stage::init_at (or the outermost
// reduce loop) inwards. kArgMax and kArgMin start with the largest index, which loses every tie.
//
// Storage: an attached stage's tensor holds its region only and is allocated at the attach point; a root
// stage's is global and allocated around its uses. An intermediate that no one reads is still computed.
Result<LoweredProgram> lower(const sched::Schedule& schedule, std::string name = "kernel");

// Copies a logical row-major tensor into a layout, padding with zeros. source and destination hold whole
// elements of element_bytes; destination has the product of the layout's extents.
void pack(const sched::Layout& layout, const std::vector<int64_t>& logical_shape, int element_bytes,
          const void* source, void* destination);

// The tensor that the program's input holds, made of the workload's constant. Fails where the constant does
// not fit the transform or the layout.
Result<Tensor> prepare(const PreparedConstant& constant, const Tensor& source);

}  // namespace tensorsmith::lower
