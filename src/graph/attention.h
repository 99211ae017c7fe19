// The kernel of softmax(q * k^T) * v. Internal to graph.
#pragma once

#include "graph/emit.h"

namespace tensorsmith::graph {

// `product` contracts the quotients of a softmax with values: divides the sums instead of what is added up,
// which are as many as there are keys. Each quotient's rounding error, half a unit in the last place, becomes
// one of the result.
//   p = e[b, i, j] / s[b, i]; o = sum_j p[b, i, j] * v[b, j, d]
//     =>  o' = sum_j e[b, i, j] * v[b, j, d]; o = o'[b, i, d] / s[b, i]
// Returns the result's buffer; `product` itself, and nothing changes, where it is no such contraction.
ir::Buffer divide_after_contraction(const ir::Buffer& product, WorkloadBuilder& builder);

}  // namespace tensorsmith::graph
