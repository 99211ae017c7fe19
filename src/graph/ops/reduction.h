// Reductions over selected dimensions, shared by Reduce*, softmax and normalizations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ops/index.h"

namespace tensorsmith::graph {

// out[kept dims] = combiner over the given dimensions (in any order, distinct) of value(index of
// in). With keep_dims, the reduced dimensions are kept with extent 1. Dimensions of extent 1 get no
// reduction axis. Sums are computed by reduce_sum() unless `widen` is false.
ir::Buffer reduce_dims(OpContext& ctx, const std::string& name, const Shape& shape,
                       std::span<const size_t> dims, bool keep_dims, ir::Combiner combiner,
                       const std::function<ir::Expr(std::span<const ir::Expr>)>& value, bool widen = true);

// Longer sums of f32 are accumulated in f64. In serial f32 sums, the rounding errors of n equal
// elements grow with n^2, and 5 million times 0.1 is off by .2 % for any schedule. A shorter sum
// loses at most 2^14 * 2^-25 = .05 %, half of the tolerance of checks, and a schedule with
// vectorized sums a sixteenth of that.
inline constexpr int64_t kLongSum = int64_t{1} << 14;
// ctx.reduce() with Combiner::kSum, accumulated in f64 if it is long. The result has the body's
// dtype.
ir::Buffer reduce_sum(OpContext& ctx, const std::string& name, std::vector<ir::Axis> spatial,
                      std::vector<ir::Axis> reduce, ir::Expr body);

// Reads the reduced tensor (keep_dims) at an index of the full shape.
ir::Expr read_reduced(const ir::Buffer& reduced, std::span<const ir::Expr> indices);

}  // namespace tensorsmith::graph
