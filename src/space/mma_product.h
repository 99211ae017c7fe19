// Products of two matrices that the tensor cores of NVIDIA's GPUs compute, for the plans that have them do it.
#pragma once

#include <optional>
#include <vector>

#include "sched/tensor_cores.h"
#include "space/plan_context.h"

namespace tensorsmith::space {

// As many as a group of an instruction's rows, or its columns.
inline constexpr int64_t kFoldedPoints = sched::kMmaColumns;
static_assert(kFoldedPoints == sched::kMmaGroups);

// What is multiplied: sum over k of A[.., i, k] * B[.., k, j], with these in any order of dimensions. A convolution is such
// a product for each place in its window: rows or columns are points along an axis of the output, k are input channels.
struct MmaProduct {
  AxisId rows, columns, sum;
  // An image's points that a tile has are kFoldedPoints along `rows` or `columns` by some along this axis, which stands before
  // it in the operand; none: they are all along `rows` or `columns`. At most one of the two is there.
  AxisId folded_rows, folded_columns;
  std::vector<AxisId> batch;   // all other spatial axes: a block has one point of each
  std::vector<AxisId> window;  // all other axes of the reduction: a chunk has one point of each
  Read a, b;
  int element_bytes = 2;
};

// The product that the anchor computes and the output's stage writes, if tensor cores have instructions for it.
std::optional<MmaProduct> match_mma(const PlanContext& context, StageId output, StageId anchor);

// The same product of a convolution with tiles of points along two axes, for images that are narrower than a tile; none where
// the points of such a tile would not be evenly apart in shared memory.
std::optional<MmaProduct> fold_tiles(const PlanContext& context, StageId anchor, const MmaProduct& product);

// One product of matrices that lie in memory with rows, columns or the sum contiguous: no window, no steps between points.
bool multiplies_matrices(const PlanContext& context, const MmaProduct& product);

}  // namespace tensorsmith::space
