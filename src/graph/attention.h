// The kernel of softmax(q * k^T) * v. Internal to graph.
#pragma once

#include "graph/emit.h"

namespace tensorsmith::graph {

// If `product` contracts the quotients of a softmax with values, divides the sums instead of their
// terms, of which there are as many as keys. Each quotient's rounding error, half a unit in the
// last place, is replaced by one of the result.
//   p = e[b, i, j] / s[b, i]; o = sum_j p[b, i, j] * v[b, j, d]
//     =>  o' = sum_j e[b, i, j] * v[b, j, d]; o = o'[b, i, d] / s[b, i]
// Returns the result's buffer. If `product` is no such contraction, returns it and changes nothing.
ir::Buffer divide_after_contraction(const ir::Buffer& product, WorkloadBuilder& builder);

}  // namespace tensorsmith::graph
