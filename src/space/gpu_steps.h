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

// Makes the stage compute into memory of this scope, from where its readers read. Returns the new
// stage, which computes. The stage must not be an output, and its loops must be unchanged.
StageId move_to(TraceMaker& maker, StageId stage, ir::MemoryScope scope);

// Lets the threads of a block compute a stage in shared memory together: its spatial loops are
// fused and distributed in vectors. Reduce loops stay inside. The stage's loops must be unchanged.
void share_among_threads(TraceMaker& maker, StageId stage, int64_t threads, int64_t vector);

}  // namespace tensorsmith::space
