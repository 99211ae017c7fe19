// Steps that several kinds of plans make, and the lengths of their vectors.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "space/trace_maker.h"

namespace tensorsmith::space {

// Returns the largest divisor of n that is at most limit.
int64_t largest_divisor(int64_t n, int64_t limit);

// Returns the widest vector for an innermost loop of this length: the largest divisor of length
// that is at most `lanes`, or, if that exceeds 16, a power of two of at least 8 if there is one. 1
// = do not vectorize.
int64_t vector_lanes(int64_t length, int64_t lanes);

// Adds up the `lanes` partial results of a stage that sched::Rfactor has made, at most `vector` at
// a time, by halving, each half a vector: {16} -> {8} -> {4} -> {2}, which leaves one addition.
// Appends the stages that this takes to `partials`.
void combine_lanes(TraceMaker& maker, StageId stage, int64_t lanes, int64_t vector,
                   std::vector<StageId>& partials);

// Returns a digit of the dimension's index in a layout: index / divisor % extent.
sched::LayoutDim layout_dim(AxisId dimension, int64_t divisor, int64_t extent);

// Fuses the first `count` of the loops `outer`, the outermost ones of the stage, and makes the
// fused loop parallel. Returns that loop, or none if count is 0.
LoopId parallelize(TraceMaker& maker, StageId stage, const std::vector<LoopId>& outer, size_t count);

// Appends the stage's leaves that are not in `placed` and are not `vector_loop` to `order`.
void append_others(TraceMaker& maker, StageId stage, std::initializer_list<const std::vector<LoopId>*> placed,
                   LoopId vector_loop, std::vector<LoopId>& order);

// Schedules a purely spatial stage in place: rows outside, the contiguous axis split into vectors.
// `extents`: those of its loops where it is computed. `parallel`: the stage is at the root, and its
// rows are distributed over threads.
void emit_copy_stage(TraceMaker& maker, StageId stage, const IdVector<AxisId, int64_t>& extents,
                     AxisId contiguous_axis, int64_t lanes, bool parallel, sched::TailPolicy tail);

}  // namespace tensorsmith::space
