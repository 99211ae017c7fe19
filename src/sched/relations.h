// Extents and index values across a stage's splits and fuses.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/schedule.h"

namespace tensorsmith::sched {

inline bool is_block(Annotation a) {
  return a == Annotation::kBlockX || a == Annotation::kBlockY || a == Annotation::kBlockZ;
}
inline bool is_block_thread(Annotation a) {
  return a == Annotation::kThreadX || a == Annotation::kThreadY || a == Annotation::kThreadZ;
}
// Returns whether the annotation binds to a thread axis, to virtual threads or to a block axis.
inline bool bound_to_gpu(Annotation a) { return a >= Annotation::kVThread; }
// Returns whether the annotation is a thread of a block or a virtual thread.
inline bool is_thread(Annotation a) { return is_block_thread(a) || a == Annotation::kVThread; }

// On entry, `extents` has the extents of the root axes; on return, those of every iterator, as
// Bounds defines them.
void pass_down_extents(const Stage& stage, IdVector<IteratorId, int64_t>& extents);
// Returns the extents of all iterators if the stage is computed in full.
IdVector<IteratorId, int64_t> full_extents(const Stage& stage);

// On entry, `values` has the values of the leaves; on return, those of every iterator (row-major
// recomposition with the extents). Iterators that depend on an undefined value stay undefined.
void pass_up_values(const Stage& stage, const IdVector<IteratorId, int64_t>& extents,
                    IdVector<IteratorId, ir::Expr>& values);

// Returns whether the last tile of the split is shifted so that it overlaps its neighbour: start =
// min(outer * T, N - T) for tiles of T = product of the inner extents. This applies to tails of
// TailPolicy::kShift if N >= T is not a multiple of T. Values in the overlap are computed twice, so
// the stage must not be a reduction, which would add to existing values. The outer loop must not be
// parallel, since two threads would write the same place (the same value, but still a data race).
// may_leave: by root axis, whether the stage's region may leave the tensor (Bounds); a tail that is
// cut there is not a tile of the split.
bool shifts_last_tile(const Stage& stage, const SplitRelation& split,
                      const IdVector<IteratorId, int64_t>& extents, const std::vector<uint8_t>& may_leave);

// Returns whether the last tile of the split may run beyond the extent: tails of
// TailPolicy::kOverrun on a spatial axis whose region never leaves the tensor, in an attached stage
// that does not reduce. Its storage must have room for whole tiles, and the elements that it reads
// must exist; lowering ensures both.
bool may_overrun(const Stage& stage, const SplitRelation& split, const IdVector<IteratorId, int64_t>& extents,
                 const std::vector<uint8_t>& may_leave);

// Returns the memory scope of the stage's tensor: that of the schedule, otherwise one that follows
// from the loops around it (TVM's bound inference). A stage that is computed inside a loop over
// threads is private to each thread, unless its own loops distribute the work among threads; one
// that is computed inside a loop over blocks belongs to the block.
ir::MemoryScope memory_scope(const Schedule& schedule, StageId s);

// Returns whether the stage is a tile that the threads of a GPU block share. It then holds its
// whole region, with zeros where the region leaves the tensor, so that its readers need no guards,
// under which threads could not synchronize.
bool fills_region(const Schedule& schedule, StageId s);

// Returns the parents of splits whose children enumerate more values than the parent's extent, so
// that these values need a guard.
std::vector<IteratorId> overshooting(const Stage& stage, const IdVector<IteratorId, int64_t>& extents);

}  // namespace tensorsmith::sched
