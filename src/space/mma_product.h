// Products of two matrices on the tensor cores of NVIDIA's GPUs, for the plans that use these.
#pragma once

#include <optional>
#include <vector>

#include "sched/tensor_cores.h"
#include "space/plan_context.h"

namespace tensorsmith::space {

// Points of a folded tile along one axis: as many as an instruction has groups of rows, or columns.
inline constexpr int64_t kFoldedPoints = sched::kMmaColumns;
static_assert(kFoldedPoints == sched::kMmaGroups);

// A product: sum over k of A[.., i, k] * B[.., k, j], with these dimensions in any order. A
// convolution is such a product for each place in its window: rows or columns are points along an
// axis of the output, k are input channels.
struct MmaProduct {
  AxisId rows, columns, sum;
  // If one of these is valid (at most one is), a tile has the points of an image along two axes:
  // kFoldedPoints along `rows` (or `columns`) times some along this axis, which precedes the former
  // in the operand. Otherwise all points of a tile are along `rows` or `columns`.
  AxisId folded_rows, folded_columns;
  std::vector<AxisId> batch;   // all other spatial axes: a block has one point of each
  std::vector<AxisId> window;  // all other axes of the reduction: a chunk has one point of each
  Read a, b;
  int element_bytes = 2;
};

// Returns the product that the anchor computes and the output's stage writes, if tensor cores have
// instructions for it.
std::optional<MmaProduct> match_mma(const PlanContext& context, StageId output, StageId anchor);

// Returns the same product of a convolution with tiles of points along two axes, for images that
// are narrower than a tile; none if the points of such a tile would not be evenly spaced in shared
// memory.
std::optional<MmaProduct> fold_tiles(const PlanContext& context, StageId anchor, const MmaProduct& product);

// Returns whether this is one product of matrices that are contiguous along rows, columns or the
// sum: without a window and without strides between points.
bool multiplies_matrices(const PlanContext& context, const MmaProduct& product);

}  // namespace tensorsmith::space
