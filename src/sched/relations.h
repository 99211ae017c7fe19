// Extents and index values along a stage's splits and fuses.
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
// To a thread axis, to virtual threads or to a block axis.
inline bool bound_to_gpu(Annotation a) { return a >= Annotation::kVThread; }
// A block's, or a virtual one.
inline bool is_thread(Annotation a) { return is_block_thread(a) || a == Annotation::kVThread; }

// On entry extents[i] of the root axes; on return of every iterator, as Bounds defines them.
void pass_down_extents(const Stage& stage, IdVector<IteratorId, int64_t>& extents);
// Extents of all iterators if the stage is computed in full.
IdVector<IteratorId, int64_t> full_extents(const Stage& stage);

// On entry values[i] of the leaves; on return of every iterator (row-major recomposition with the extents).
// Iterators that depend on an undefined value stay undefined.
void pass_up_values(const Stage& stage, const IdVector<IteratorId, int64_t>& extents,
                    IdVector<IteratorId, ir::Expr>& values);

// Whether the last tile of the split is shifted over its neighbour, start = min(outer * T, N - T) for tiles
// of T = product of the inner extents: tails of TailPolicy::kShift where N >= T does not divide. Computing a
// value twice must give the same value: not for reductions, which add to what is there; and the outer loop is
// no parallel one, lest two threads write one place (the same value, but a race all the same). may_leave: by
// root axis, whether the stage's region may leave the tensor (Bounds); what is cut there is no tile of the
// split.
bool shifts_last_tile(const Stage& stage, const SplitRelation& split,
                      const IdVector<IteratorId, int64_t>& extents, const std::vector<uint8_t>& may_leave);

// Whether the last tile of the split may run beyond the extent: tails of TailPolicy::kOverrun on a spatial
// axis whose region never leaves the tensor, of an attached stage that does not reduce. Its storage must have
// room for whole tiles, and what it reads must be there: lowering sees to both.
bool may_overrun(const Stage& stage, const SplitRelation& split, const IdVector<IteratorId, int64_t>& extents,
                 const std::vector<uint8_t>& may_leave);

// Where the stage's tensor lives: where the schedule says, and else where the loops around it have it (TVM's bound
// inference): what is computed inside a loop over threads is each thread's own, unless its own loops share the work among
// threads; what is computed inside a loop over blocks is the block's.
ir::MemoryScope memory_scope(const Schedule& schedule, StageId s);

// Whether the stage is a tile that a GPU block's threads share: it holds its whole region, with zeros where that leaves the
// tensor, so that those who read it need no guards, around which threads could not wait for each other.
bool fills_region(const Schedule& schedule, StageId s);

// The parents of splits whose children enumerate more than the parent's extent: their values need a guard.
std::vector<IteratorId> overshooting(const Stage& stage, const IdVector<IteratorId, int64_t>& extents);

}  // namespace tensorsmith::sched
