// Steps that several kinds of plans make, and the lengths of their vectors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "space/trace_maker.h"

namespace tensorsmith::space {

// The largest divisor of n that is at most limit; 1 if there is no other.
int64_t largest_divisor(int64_t n, int64_t limit);

// Widest vector for an innermost loop of this length: the largest divisor of length that is at most `lanes`,
// a power of two where it is longer than 16; 1 = do not vectorize.
int64_t vector_lanes(int64_t length, int64_t lanes);

// Adds up the `lanes` partial results of a stage that sched::Rfactor has made, at most `vector` at a time, in
// halves, each half a vector: {16} -> {8} -> {4} -> {2}, which leaves one addition. The stages that this
// takes are appended to `partials`.
void combine_lanes(TraceMaker& maker, StageId stage, int64_t lanes, int64_t vector,
                   std::vector<StageId>& partials);

// A digit of an index of the dimension in a layout: index / divisor % extent.
sched::LayoutDim layout_dim(AxisId dimension, int64_t divisor, int64_t extent);

// Fuses the first `count` of the loops `outer`, the outermost of the stage, and marks the fused one parallel:
// the result, none where count is 0.
LoopId parallelize(TraceMaker& maker, StageId stage, const std::vector<LoopId>& outer, size_t count);

// Schedules a purely spatial stage in place: rows outside, the contiguous axis split into vectors. extents:
// of its loops where it is computed. parallel: at root.
void emit_copy_stage(TraceMaker& maker, StageId stage, const IdVector<AxisId, int64_t>& extents,
                     AxisId contiguous_axis, int64_t lanes, bool parallel, sched::TailPolicy tail);

}  // namespace tensorsmith::space
