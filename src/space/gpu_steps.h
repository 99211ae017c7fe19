// Steps that the plans for GPUs have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "space/trace_maker.h"

namespace tensorsmith::space {

// Tails are predicated: threads that have nothing to do wait for the others.
inline constexpr auto kPredicate = sched::TailPolicy::kPredicate;

// A loop of a stage over these loops, none of which stands between others: the loops fused, or a new one of
// extent 1.
LoopId fuse_or_unit(TraceMaker& maker, StageId stage, const std::vector<LoopId>& loops);

// The stage computes into memory of this scope and its readers read there: the new stage, which computes. The
// stage's loops are untouched, and it is no output.
StageId move_to(TraceMaker& maker, StageId stage, ir::MemoryScope scope);

// The threads of a block compute a stage of shared memory together: all its spatial loops are one, handed out
// in vectors. Reduce loops stay inside. No loop of it was changed.
void share_among_threads(TraceMaker& maker, StageId stage, int64_t threads, int64_t vector);

}  // namespace tensorsmith::space
