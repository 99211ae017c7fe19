// Reductions over chosen dimensions, shared by Reduce*, softmax and normalizations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ops/index.h"

namespace tensorsmith::graph {

// out[kept dims] = combiner over the given dimensions (sorted or not, distinct) of value(index of in). With
// keep_dims the reduced dimensions stay with extent 1. Dimensions of extent 1 make no reduction axis.
ir::Buffer reduce_dims(OpContext& ctx, const std::string& name, const Shape& shape,
                       std::span<const size_t> dims, bool keep_dims, ir::Combiner combiner,
                       const std::function<ir::Expr(std::span<const ir::Expr>)>& value);

// The reduced tensor (keep_dims) at an index of the full shape.
ir::Expr read_reduced(const ir::Buffer& reduced, std::span<const ir::Expr> indices);

}  // namespace tensorsmith::graph
