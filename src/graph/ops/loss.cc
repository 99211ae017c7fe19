// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss (they appear in exported evaluation graphs).
#include <numeric>

#include "graph/ops/reduction.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::Expr;
using ir::Intrinsic;

Status check_shapes(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  if (x.size() < 2 || x[1] < 1) return ctx.invalid("scores must have shape (N, C, ...)");
  Shape labels = {x[0]};
  labels.insert(labels.end(), x.begin() + 2, x.end());
  if (ctx.shape(1) != labels) {
    return ctx.invalid("labels have shape " + describe(ctx.dtype(1), ctx.shape(1)) + " instead of " +
                       describe(ctx.dtype(1), labels));
  }
  if (ctx.has(2) && ctx.shape(2) != Shape{x[1]}) return ctx.invalid("there must be one weight per class");
  return {};
}

// Returns -log_probability[n, label[n, ...], ...] * weight[label] and its reduction. Labels equal
// to ignore_index contribute nothing.
Result<ir::Buffer> emit_likelihood(OpContext& ctx, const ir::Buffer& log_probability) {
  const ir::DType dtype = log_probability->dtype;
  const Shape& shape = ctx.shape(1);
  const int64_t classes = log_probability->shape[1];
  const std::string reduction = ctx.string_attr("reduction", "mean");
  const bool ignores = ctx.has_attr("ignore_index");
  const int64_t ignored = ctx.int_attr("ignore_index", 0);

  const auto weight = [&](std::span<const Expr> at) {
    const Expr label = ir::load(ctx.in(1), Exprs(at.begin(), at.end()));
    const Expr w = ctx.has(2) ? ir::load(ctx.in(2), {wrap_index(label, classes)}) : ir::make_const(dtype, 1);
    if (!ignores) return w;
    return ir::select(label == ir::int_imm(label.dtype(), ignored), ir::make_const(dtype, 0), w);
  };
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  Exprs at = vars;
  at.insert(at.begin() + 1, wrap_index(ir::load(ctx.in(1), vars), classes));
  Expr body = -ir::load(log_probability, at) * weight(vars);
  if (ignores) {
    // An ignored element is 0 even if the weight times the score is NaN.
    const Expr label = ir::load(ctx.in(1), vars);
    body = ir::select(label == ir::int_imm(label.dtype(), ignored), ir::make_const(dtype, 0), body);
  }
  const ir::Buffer loss = ctx.compute("nll", std::move(axes), std::move(body));
  if (reduction == "none") return loss;
  if (reduction != "sum" && reduction != "mean") return ctx.invalid("unknown reduction '" + reduction + "'");
  std::vector<size_t> dims(shape.size());
  std::iota(dims.begin(), dims.end(), size_t{0});
  const ir::Buffer sum = reduce_dims(
      ctx, "loss_sum", shape, dims, false, Combiner::kSum,
      [&](std::span<const Expr> indices) { return ir::load(loss, Exprs(indices.begin(), indices.end())); });
  if (reduction == "sum") return sum;
  const ir::Buffer weights = reduce_dims(ctx, "weight_sum", shape, dims, false, Combiner::kSum, weight);
  return ctx.compute("loss_mean", {}, ir::load(sum, {}) / ir::load(weights, {}));
}

Result<Buffers> emit_nll_loss(OpContext& ctx) {
  TS_RETURN_IF_ERROR(check_shapes(ctx));
  TS_ASSIGN_OR_RETURN(ir::Buffer loss, emit_likelihood(ctx, ctx.in(0)));
  return Buffers{loss};
}

Result<Buffers> emit_cross_entropy_loss(OpContext& ctx) {
  TS_RETURN_IF_ERROR(check_shapes(ctx));
  const Shape& shape = ctx.shape(0);
  const size_t dims[] = {1};
  const auto score = [&](std::span<const Expr> indices) {
    return ir::load(ctx.in(0), Exprs(indices.begin(), indices.end()));
  };
  const ir::Buffer best = reduce_dims(ctx, "softmax_max", shape, dims, true, Combiner::kMax, score);
  const ir::Buffer sum =
      reduce_dims(ctx, "softmax_sum", shape, dims, true, Combiner::kSum, [&](std::span<const Expr> indices) {
        return ir::call(Intrinsic::kExp, {score(indices) - read_reduced(best, indices)});
      });
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  Expr body = score(vars) - read_reduced(best, vars) - ir::call(Intrinsic::kLog, {read_reduced(sum, vars)});
  const ir::Buffer log_probability = ctx.compute("log_softmax", std::move(axes), std::move(body));
  TS_ASSIGN_OR_RETURN(ir::Buffer loss, emit_likelihood(ctx, log_probability));
  return Buffers{loss, log_probability};
}

}  // namespace

std::span<const OpEntry> loss_operators() {
  static const OpEntry kEntries[] = {
      {"NegativeLogLikelihoodLoss", "f:TIt", emit_nll_loss},
      {"SoftmaxCrossEntropyLoss", "f:TIt", emit_cross_entropy_loss},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
