// The equation of an Einsum. Internal to the operators.
#pragma once

#include <map>
#include <vector>

#include "graph/ops/op_context.h"

namespace tensorsmith::graph {

// One label per dimension. The dimensions of an ellipsis are labelled -1, -2, ... from the last one, so that
// operands with fewer of them broadcast.
using Labels = std::vector<int>;

struct EinsumTerms {
  std::vector<Labels> operands;
  Labels output;
  std::map<int, int64_t> extents;  // by label
};

// Returns the terms of attribute `equation` for the context's inputs.
Result<EinsumTerms> read_einsum(OpContext& ctx);

}  // namespace tensorsmith::graph
