// Steps that the plans for GPUs share.
#pragma once

#include <cstdint>
#include <vector>

#include "space/trace_maker.h"

namespace tensorsmith::space {

// Tails are predicated: threads that have nothing to do wait for the others.
inline constexpr auto kPredicate = sched::TailPolicy::kPredicate;

// Returns one loop for these adjacent loops of a stage: the loops fused, or a new loop of extent 1
// if there are none.
LoopId fuse_or_unit(TraceMaker& maker, StageId stage, const std::vector<LoopId>& loops);

// Makes the stage compute into memory of this scope, which its readers then read directly. Returns
// the new stage that computes; the old one is inlined. The stage must not be an output, and its loops
// must be unchanged.
StageId move_to(TraceMaker& maker, StageId stage, ir::MemoryScope scope);

// Makes the anchor compute into local memory. `output` is the anchor or its elementwise consumer. Returns the
// stage that computes.
StageId compute_locally(TraceMaker& maker, StageId output, StageId anchor);

// Appends an outer and an inner loop over blocks to `blocks`. If `group` > 1, the outer loop is split into
// groups of so many steps, and the steps of a group are executed for each step of the inner loop.
void append_grouped(TraceMaker& maker, StageId stage, LoopId outer, LoopId inner, int64_t group,
                    std::vector<LoopId>& blocks);

// Lets this many warps of a block compute a stage in shared memory together: its spatial loops are
// fused, and the threads of each warp compute neighbouring vectors. The stage's loops must be
// unchanged.
void share_among_warps(TraceMaker& maker, StageId stage, int64_t warps, int64_t vector);

// Lets the threads of a block compute a stage in shared memory together: its spatial loops are
// fused and distributed in vectors. Reduce loops stay inside. The stage's loops must be unchanged.
void share_among_threads(TraceMaker& maker, StageId stage, int64_t threads, int64_t vector);

}  // namespace tensorsmith::space
