// Softmax, LogSoftmax, Hardmax.
#include <numeric>

#include "graph/ops/reduction.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::Expr;
using ir::Intrinsic;

// Opset 13 and later: along one axis (default the last). Earlier: the tensor is flattened to a
// matrix at the axis (default 1), so all dimensions from the axis on are normalized together.
Result<std::vector<size_t>> normalized_dims(OpContext& ctx) {
  const int64_t rank = ctx.rank(0);
  if (ctx.opset() >= 13) {
    TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", -1), rank));
    return std::vector<size_t>{axis};
  }
  const int64_t attribute = ctx.int_attr("axis", 1);
  size_t first = rank;
  if (attribute != rank) {
    TS_ASSIGN_OR_RETURN(first, ctx.normalize_axis(attribute, rank));
  }
  std::vector<size_t> dims(rank - first);
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

// Sums are not widened: the attention plan recognizes a softmax by its stages, and its terms, one
// of which is 1, are seldom equal.
constexpr bool kWiden = false;

ir::Buffer emit_max(OpContext& ctx, std::span<const size_t> dims) {
  return reduce_dims(ctx, "softmax_max", ctx.shape(0), dims, true, Combiner::kMax,
                     [&](std::span<const Expr> indices) {
                       return ir::load(ctx.in(0), Exprs(indices.begin(), indices.end()));
                     });
}

// e^-86.5 is slightly above the smallest normal f32. Code generation recognizes the expression.
constexpr double kLeastExponent = -86.5;

// Returns e^x, or 0 where that is subnormal or nearly so. Finite masks, -100 for instance, produce
// many such values, and each product with one takes a processor a hundred cycles or more.
Expr exp_or_zero(const Expr& x) {
  const Expr exponential = ir::call(Intrinsic::kExp, {x});
  if (x.dtype() != ir::DType::kF32) return exponential;
  return ir::select(x < ir::float_imm(x.dtype(), kLeastExponent), ir::float_imm(x.dtype(), 0), exponential);
}

Result<Buffers> emit_softmax(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const std::vector<size_t> dims, normalized_dims(ctx));
  const Shape& shape = ctx.shape(0);
  const ir::Buffer best = emit_max(ctx, dims);
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  Expr shifted = ir::load(ctx.in(0), vars) - read_reduced(best, vars);
  const ir::Buffer exponential = ctx.compute("softmax_exp", std::move(axes), exp_or_zero(shifted));
  const ir::Buffer sum = reduce_dims(
      ctx, "softmax_sum", shape, dims, true, Combiner::kSum,
      [&](std::span<const Expr> indices) {
        return ir::load(exponential, Exprs(indices.begin(), indices.end()));
      },
      kWiden);
  std::vector<ir::Axis> out = axes_for(shape);
  const Exprs out_vars = vars_of(out);
  Expr body = ir::load(exponential, out_vars) / read_reduced(sum, out_vars);
  return Buffers{ctx.compute("softmax", std::move(out), std::move(body))};
}

// x - max - log(sum(exp(x - max)))
Result<Buffers> emit_log_softmax(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const std::vector<size_t> dims, normalized_dims(ctx));
  const Shape& shape = ctx.shape(0);
  const ir::Buffer best = emit_max(ctx, dims);
  const auto shifted = [&](std::span<const Expr> indices) {
    return ir::load(ctx.in(0), Exprs(indices.begin(), indices.end())) - read_reduced(best, indices);
  };
  const ir::Buffer sum = reduce_dims(
      ctx, "softmax_sum", shape, dims, true, Combiner::kSum,
      [&](std::span<const Expr> indices) { return ir::call(Intrinsic::kExp, {shifted(indices)}); }, kWiden);
  std::vector<ir::Axis> out = axes_for(shape);
  const Exprs vars = vars_of(out);
  Expr body = shifted(vars) - ir::call(Intrinsic::kLog, {read_reduced(sum, vars)});
  return Buffers{ctx.compute("log_softmax", std::move(out), std::move(body))};
}

// 1 at the first maximum, else 0.
Result<Buffers> emit_hardmax(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const std::vector<size_t> dims, normalized_dims(ctx));
  const Shape& shape = ctx.shape(0);
  const auto position = [&](std::span<const Expr> indices) {
    Expr linear = 0;
    for (size_t d : dims) linear = linear * Expr(shape[d]) + indices[d];
    return linear;
  };
  std::vector<ir::Axis> spatial;
  std::vector<ir::Axis> reduce;
  Exprs indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    spatial.push_back({ir::Var("i" + std::to_string(d)), reduced ? 1 : shape[d]});
    if (reduced) reduce.push_back({ir::Var("r" + std::to_string(d)), shape[d]});
    indices.push_back(reduced ? reduce.back().var : spatial.back().var);
  }
  if (dims.empty()) {
    return Buffers{
        map_elements(ctx, "hardmax", ctx.in(0), [](const Expr& x) { return ir::make_const(x.dtype(), 1); })};
  }
  const Buffers best = ctx.reduce_arg("hardmax_best", std::move(spatial), std::move(reduce),
                                      Combiner::kArgMax, ir::load(ctx.in(0), indices), position(indices));
  std::vector<ir::Axis> out = axes_for(shape);
  const Exprs vars = vars_of(out);
  const ir::DType dtype = ctx.dtype(0);
  Expr body = ir::select(position(vars) == read_reduced(best[1], vars), ir::make_const(dtype, 1),
                         ir::make_const(dtype, 0));
  return Buffers{ctx.compute("hardmax", std::move(out), std::move(body))};
}

}  // namespace

std::span<const OpEntry> softmax_operators() {
  static const OpEntry kEntries[] = {
      {"Hardmax", "f:T", emit_hardmax},
      {"LogSoftmax", "f:T", emit_log_softmax},
      {"Softmax", "f:T", emit_softmax},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
