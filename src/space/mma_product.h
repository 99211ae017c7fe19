// Products of two matrices that the tensor cores of NVIDIA's GPUs compute, for the plans that have them do it.
#pragma once

#include <optional>
#include <vector>

#include "space/plan_context.h"

namespace tensorsmith::space {

// What is multiplied: sum over k of A[.., i, k] * B[.., k, j], with these in any order of dimensions.
struct MmaProduct {
  AxisId rows, columns, sum;
  std::vector<AxisId> batch;  // all others: a block has one point of each
  Read a, b;
  int element_bytes = 2;
};

// The product that the anchor computes and the output's stage writes, if tensor cores have instructions for it.
std::optional<MmaProduct> match_mma(const PlanContext& context, StageId output, StageId anchor);

}  // namespace tensorsmith::space
