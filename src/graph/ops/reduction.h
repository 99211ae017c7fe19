// Reductions over chosen dimensions, shared by Reduce*, softmax and normalizations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ops/index.h"

namespace tensorsmith::graph {

// out[kept dims] = combiner over the given dimensions (sorted or not, distinct) of value(index of in). With
// keep_dims the reduced dimensions stay with extent 1. Dimensions of extent 1 make no reduction axis. Sums
// are those of reduce_sum() unless `widen` is false.
ir::Buffer reduce_dims(OpContext& ctx, const std::string& name, const Shape& shape,
                       std::span<const size_t> dims, bool keep_dims, ir::Combiner combiner,
                       const std::function<ir::Expr(std::span<const ir::Expr>)>& value, bool widen = true);

// Longer sums of f32 are kept in f64: one after the other, the rounding errors of n equal elements grow with
// n^2, and 5 million times 0.1 is .2 % off whatever the schedule. A shorter one loses at most 2^14 * 2^-25 =
// .05 %, half of what a check accepts, and a schedule with its sums in vectors a sixteenth of that.
inline constexpr int64_t kLongSum = int64_t{1} << 14;
// ctx.reduce() with Combiner::kSum, kept in f64 if it is long. The result has the body's dtype.
ir::Buffer reduce_sum(OpContext& ctx, const std::string& name, std::vector<ir::Axis> spatial,
                      std::vector<ir::Axis> reduce, ir::Expr body);

// The reduced tensor (keep_dims) at an index of the full shape.
ir::Expr read_reduced(const ir::Buffer& reduced, std::span<const ir::Expr> indices);

}  // namespace tensorsmith::graph
