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

// Preparation of a constant when a model is compiled: it is transformed, then packed.
struct PreparedConstant {
  size_t input = 0;  // index into Program::inputs; the buffer there has the physical shape of the result
  std::shared_ptr<const ir::Workload> transform;  // its only placeholder is the constant; null: none
  std::optional<sched::Layout> layout;            // layout of the result; none: row-major
};

struct LoweredProgram {
  ir::Program
      program;  // inputs = the workload's placeholders in order (prepared ones with their physical shape)
  std::vector<PreparedConstant> prepared;
};

// Emits loops, guards or peeled tails, reduction inits, allocations and physical layouts. The
// program passes ir::verify, and its accesses are in range (ir::verify_in_bounds proves that except
// for a few indices of fused loops whose tiles are not aligned). Errors name the stage.
//
// Tails: kPeel cuts the last level of a split that can be cut: full tiles without guards, followed
// by a tail whose inner loops are cut to the remainder; outer loops may then vary in length. If the
// loop is fused, parallel or split again, a branch inside it chooses between full tile and tail. A
// nest is doubled at most six times (NestBuilder::kMaxPeels); further tails are guarded. A
// vectorized loop is never cut in two, but may get shorter. kShift and kOverrun need none of this:
// with kShift, the last tile is as long as the others; with kOverrun, too, provided that all
// elements that are read beyond the region exist.
//
// Guards are placed at the outermost loop that determines them. An attached stage computes its
// region to the end, beyond the tensor, if everything that it reads there exists (padding of packed
// constants, reads under selects, attached producers that do the same). Otherwise, an attached
// reduction gets one nest for regions inside the tensor and a guarded one.
//
// Reductions: the init is a separate nest over the spatial loops from Stage::init_at (or the
// outermost reduce loop) inwards. kArgMax and kArgMin start with the largest index, which loses
// every tie.
//
// Storage: the tensor of an attached stage holds only its region and is allocated at the attach
// point; that of a root stage is global and allocated around its uses. An intermediate that nothing
// reads is still computed.
Result<LoweredProgram> lower(const sched::Schedule& schedule, std::string name = "kernel");

// Copies a logical row-major tensor into a layout, with padding zeros. `source` and `destination`
// consist of elements of element_bytes; `destination` has as many as the product of the layout's
// extents.
void pack(const sched::Layout& layout, const std::vector<int64_t>& logical_shape, int element_bytes,
          const void* source, void* destination);

// Computes the tensor that the program's input holds from the workload's constant. Fails if the
// constant does not fit the transform or the layout.
Result<Tensor> prepare(const PreparedConstant& constant, const Tensor& source);

}  // namespace tensorsmith::lower
