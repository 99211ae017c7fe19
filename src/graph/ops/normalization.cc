// BatchNormalization (inference), InstanceNormalization, LayerNormalization, GroupNormalization, LRN,
// LpNormalization, MeanVarianceNormalization.
#include <numeric>

#include "graph/ops/reduction.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::Expr;
using ir::Intrinsic;

Expr square_root_of(const Expr& x) { return ir::call(Intrinsic::kSqrt, {x}); }

Result<Buffers> emit_training_batch_norm(OpContext& ctx);

Result<Buffers> emit_batch_norm(OpContext& ctx) {
  if (ctx.opset() < 14 && ctx.wants_output(1))
    return ctx.unsupported("training mode of opset " + std::to_string(ctx.opset()) +
                           "; export the model for inference");
  if (ctx.rank(0) < 2) return ctx.invalid("data must have rank 2 or more");
  const int64_t channels = ctx.shape(0)[1];
  for (size_t i = 1; i < 5; ++i) {
    // Scale and bias have the same type; mean and variance may have another.
    if (ctx.shape(i) != Shape{channels} || ctx.dtype(i) != ctx.dtype(i < 3 ? 1 : 3)) {
      return ctx.invalid("input " + std::to_string(i) + " is " + describe(ctx.dtype(i), ctx.shape(i)) +
                         " instead of a vector of " + std::to_string(channels) + " channels");
    }
  }
  if (ctx.int_attr("training_mode", 0) != 0) return emit_training_batch_norm(ctx);
  const double epsilon = ctx.float_attr("epsilon", 1e-5);
  const ir::DType dtype = ctx.dtype(0);
  std::vector<ir::Axis> channel = axes_for({channels}, "c");
  const Exprs c = vars_of(channel);
  const bool is_f64 = ctx.dtype(1) == ir::DType::kF64 || ctx.dtype(4) == ir::DType::kF64;
  const ir::DType wide = is_f64 ? ir::DType::kF64 : ir::DType::kF32;
  // Parameters of a wider type may exceed the range of the data's type.
  const bool same = ctx.dtype(1) == dtype && ctx.dtype(4) == dtype;
  const ir::DType type = same || dtype == ir::DType::kF64 ? dtype : wide;
  const auto parameter = [&](size_t i) { return ir::cast(wide, ir::load(ctx.in(i), c)); };
  Expr factor = parameter(1) / square_root_of(parameter(4) + ir::make_const(wide, epsilon));
  const ir::Buffer scale = ctx.compute("norm_scale", std::move(channel), std::move(factor));
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(axes);
  const Exprs at = {vars[1]};
  const auto as_type = [&](Expr e, ir::DType to) { return e.dtype() == to ? e : ir::cast(to, std::move(e)); };
  const auto read = [&](const ir::Buffer& buffer) { return as_type(ir::load(buffer, at), type); };
  const Expr x = as_type(ir::load(ctx.in(0), vars), type);
  const Expr body = (x - read(ctx.in(3))) * read(scale) + read(ctx.in(2));
  return Buffers{ctx.compute("batch_norm", std::move(axes), as_type(body, dtype))};
}

// Sum over dims of (x - shift)^2 or x, with the reduced dimensions kept.
struct Moments {
  ir::Buffer sum;      // sum of x
  ir::Buffer squares;  // sum of (x - mean)^2
  double count = 1;

  Expr mean(std::span<const Expr> indices) const {
    const Expr s = read_reduced(sum, indices);
    return s / ir::make_const(s.dtype(), count);
  }
  Expr variance(std::span<const Expr> indices) const {
    const Expr s = read_reduced(squares, indices);
    return s / ir::make_const(s.dtype(), count);
  }
};

Moments emit_moments(OpContext& ctx, const ir::Buffer& x, std::span<const size_t> dims) {
  Moments m;
  for (size_t d : dims) m.count *= x->shape[d];
  m.sum = reduce_dims(
      ctx, "norm_sum", x->shape, dims, true, Combiner::kSum,
      [&](std::span<const Expr> indices) { return ir::load(x, Exprs(indices.begin(), indices.end())); });
  m.squares = reduce_dims(
      ctx, "norm_square_sum", x->shape, dims, true, Combiner::kSum, [&](std::span<const Expr> indices) {
        const Expr centered = ir::load(x, Exprs(indices.begin(), indices.end())) - m.mean(indices);
        return centered * centered;
      });
  return m;
}

// Normalizes with the batch's own statistics. Outputs: normalized, running mean, running variance.
Result<Buffers> emit_training_batch_norm(OpContext& ctx) {
  const ir::DType dtype = ctx.dtype(0);
  for (size_t i = 1; i < 5; ++i)
    if (ctx.dtype(i) != dtype) return ctx.unsupported("training mode with inputs of several dtypes");
  std::vector<size_t> dims;
  for (size_t d = 0; d < ctx.rank(0); ++d)
    if (d != 1) dims.push_back(d);
  const Moments m = emit_moments(ctx, ctx.in(0), dims);
  const Expr epsilon = ir::make_const(dtype, ctx.float_attr("epsilon", 1e-5));
  const double momentum = ctx.float_attr("momentum", 0.9);
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(axes);
  Expr body = (ir::load(ctx.in(0), vars) - m.mean(vars)) / square_root_of(m.variance(vars) + epsilon) *
                  ir::load(ctx.in(1), {vars[1]}) +
              ir::load(ctx.in(2), {vars[1]});
  Buffers out = {ctx.compute("batch_norm", std::move(axes), std::move(body))};
  for (size_t i = 3; i < 5; ++i) {
    std::vector<ir::Axis> channel = axes_for({ctx.shape(0)[1]}, "c");
    Exprs at(ctx.rank(0), Expr(0));
    at[1] = channel[0].var;
    const Expr own = i == 3 ? m.mean(at) : m.variance(at);
    Expr running = ir::load(ctx.in(i), {channel[0].var}) * ir::make_const(dtype, momentum) +
                   own * ir::make_const(dtype, 1 - momentum);
    out.push_back(
        ctx.compute(i == 3 ? "running_mean" : "running_variance", std::move(channel), std::move(running)));
  }
  return out;
}

Result<Buffers> emit_instance_norm(OpContext& ctx) {
  if (ctx.rank(0) < 3) return ctx.invalid("data must have rank 3 or more");
  const int64_t channels = ctx.shape(0)[1];
  if (ctx.shape(1) != Shape{channels} || ctx.shape(2) != Shape{channels}) {
    return ctx.invalid("scale and bias must be vectors of " + std::to_string(channels) + " channels");
  }
  const double epsilon = ctx.float_attr("epsilon", 1e-5);
  std::vector<size_t> dims(ctx.rank(0) - 2);
  std::iota(dims.begin(), dims.end(), size_t{2});
  const Moments m = emit_moments(ctx, ctx.in(0), dims);
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(axes);
  const Expr normalized = (ir::load(ctx.in(0), vars) - m.mean(vars)) /
                          square_root_of(m.variance(vars) + ir::make_const(ctx.dtype(0), epsilon));
  Expr body = normalized * ir::load(ctx.in(1), {vars[1]}) + ir::load(ctx.in(2), {vars[1]});
  return Buffers{ctx.compute("instance_norm", std::move(axes), std::move(body))};
}

// Outputs: normalized, mean, 1 / standard deviation; the statistics are f32 for any data type
// (stash_type 1).
Result<Buffers> emit_layer_norm(OpContext& ctx) {
  const size_t rank = ctx.rank(0);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", -1), rank));
  const double epsilon = ctx.float_attr("epsilon", 1e-5);
  for (size_t i = 1; i < 3; ++i) {
    if (ctx.has(i) && broadcast(ctx.shape(i), ctx.shape(0)) != ctx.shape(0)) {
      return ctx.invalid("input " + std::to_string(i) + " does not broadcast to the data");
    }
  }
  std::vector<size_t> dims(rank - axis);
  std::iota(dims.begin(), dims.end(), axis);
  const Moments m = emit_moments(ctx, ctx.in(0), dims);
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(axes);
  const Expr eps = ir::make_const(ctx.dtype(0), epsilon);
  Expr body = (ir::load(ctx.in(0), vars) - m.mean(vars)) / square_root_of(m.variance(vars) + eps);
  body = body * broadcast_read(ctx.in(1), vars);
  if (ctx.has(2)) body = body + broadcast_read(ctx.in(2), vars);
  Buffers out = {ctx.compute("layer_norm", std::move(axes), std::move(body))};
  if (ctx.wants_output(1) || ctx.wants_output(2)) {
    std::vector<ir::Axis> kept = axes_for(m.sum->shape);
    Expr mean = ir::cast(ir::DType::kF32, m.mean(vars_of(kept)));
    out.push_back(ctx.compute("mean", std::move(kept), std::move(mean)));
  }
  if (ctx.wants_output(2)) {
    std::vector<ir::Axis> kept = axes_for(m.sum->shape);
    Expr inverse = ir::make_const(ctx.dtype(0), 1) / square_root_of(m.variance(vars_of(kept)) + eps);
    out.push_back(ctx.compute("inv_std_dev", std::move(kept), ir::cast(ir::DType::kF32, std::move(inverse))));
  }
  return out;
}

// x / sqrt(mean of x^2 + epsilon) * scale
Result<Buffers> emit_rms_norm(OpContext& ctx) {
  const size_t rank = ctx.rank(0);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", -1), rank));
  if (broadcast(ctx.shape(1), ctx.shape(0)) != ctx.shape(0)) {
    return ctx.invalid("the scale does not broadcast to the data");
  }
  const double epsilon = ctx.float_attr("epsilon", 1e-5);
  std::vector<size_t> dims(rank - axis);
  std::iota(dims.begin(), dims.end(), axis);
  const ir::Buffer squares = reduce_dims(
      ctx, "norm_square_sum", ctx.shape(0), dims, true, Combiner::kSum, [&](std::span<const Expr> indices) {
        const Expr x = ir::load(ctx.in(0), Exprs(indices.begin(), indices.end()));
        return x * x;
      });
  double count = 1;
  for (size_t d : dims) count *= ctx.shape(0)[d];
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(axes);
  const ir::DType dtype = ctx.dtype(0);
  const Expr mean = read_reduced(squares, vars) / ir::make_const(dtype, count);
  Expr body = ir::load(ctx.in(0), vars) / square_root_of(mean + ir::make_const(dtype, epsilon)) *
              broadcast_read(ctx.in(1), vars);
  return Buffers{ctx.compute("rms_norm", std::move(axes), std::move(body))};
}

// Scale and bias have one value per group (opset 18) or per channel (21).
Result<Buffers> emit_group_norm(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const int64_t groups = ctx.int_attr("num_groups", 0);
  if (x.size() < 2 || groups < 1 || x[1] % groups != 0) {
    return ctx.invalid("num_groups " + std::to_string(groups) + " does not divide the channels of " +
                       describe(ctx.dtype(0), x));
  }
  const int64_t per_group = x[1] / groups;
  const bool per_channel = ctx.shape(1) == Shape{x[1]};
  if ((!per_channel && ctx.shape(1) != Shape{groups}) || ctx.shape(2) != ctx.shape(1)) {
    return ctx.invalid("scale and bias must have one value per group or per channel");
  }
  const double epsilon = ctx.float_attr("epsilon", 1e-5);
  Shape grouped = {x[0], groups, per_group};
  grouped.insert(grouped.end(), x.begin() + 2, x.end());
  std::vector<size_t> dims(grouped.size() - 2);
  std::iota(dims.begin(), dims.end(), size_t{2});
  const ir::Buffer data = reshape(ctx, "group", ctx.in(0), grouped);
  const Moments m = emit_moments(ctx, data, dims);
  std::vector<ir::Axis> axes = axes_for(x);
  const Exprs vars = vars_of(axes);
  Exprs at(grouped.size(), Expr(0));
  at[0] = vars[0];
  at[1] = ir::floordiv(vars[1], per_group);
  const Expr normalized = (ir::load(ctx.in(0), vars) - m.mean(at)) /
                          square_root_of(m.variance(at) + ir::make_const(ctx.dtype(0), epsilon));
  const Expr parameter = per_channel ? vars[1] : at[1];
  Expr body = normalized * ir::load(ctx.in(1), {parameter}) + ir::load(ctx.in(2), {parameter});
  return Buffers{ctx.compute("group_norm", std::move(axes), std::move(body))};
}

// x ^ exponent; the common fractions become square roots, which are several times faster than a
// power (LRN's 0.75).
Expr positive_power(const Expr& x, double exponent) {
  if (exponent == 1) return x;
  if (exponent == 0.5) return square_root_of(x);
  if (exponent == 0.75) return square_root_of(x) * square_root_of(square_root_of(x));
  return ir::call(Intrinsic::kPow, {x, ir::make_const(x.dtype(), exponent)});
}

// x / (bias + alpha / size * sum of squares in a window of channels)^beta
Result<Buffers> emit_lrn(OpContext& ctx) {
  if (ctx.rank(0) < 2) return ctx.invalid("data must have rank 2 or more");
  const int64_t size = ctx.int_attr("size", 0);
  if (size < 1 || size > kMaxGeometry) return ctx.invalid("attribute size must be positive");
  const double alpha = ctx.float_attr("alpha", 1e-4);
  const double beta = ctx.float_attr("beta", 0.75);
  const double bias = ctx.float_attr("bias", 1.0);
  const ir::DType dtype = ctx.dtype(0);
  const int64_t channels = ctx.shape(0)[1];

  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  Exprs indices = vars_of(axes);
  std::vector<ir::Axis> reduce;
  const Expr r = add_reduce_axis(reduce, "r", size);
  const Expr c = indices[1] + r - Expr((size - 1) / 2);
  indices[1] = c;
  const Expr x = ir::load(ctx.in(0), indices);
  Expr body = ir::select(c >= 0 && c < Expr(channels), x * x, ir::make_const(dtype, 0));
  const Combiner combiner = reduce.empty() ? Combiner::kNone : Combiner::kSum;
  const ir::Buffer sum =
      ctx.reduce("lrn_square_sum", std::move(axes), std::move(reduce), combiner, std::move(body));
  std::vector<ir::Axis> out = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(out);
  const Expr base = ir::make_const(dtype, bias) + ir::make_const(dtype, alpha / size) * ir::load(sum, vars);
  Expr result = ir::load(ctx.in(0), vars) / positive_power(base, beta);
  return Buffers{ctx.compute("lrn", std::move(out), std::move(result))};
}

// x / norm of x along the axis, p = 1 or 2; a zero norm gives 0.
Result<Buffers> emit_lp_norm(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", -1), ctx.rank(0)));
  const int64_t p = ctx.int_attr("p", 2);
  if (p != 1 && p != 2) return ctx.invalid("attribute p must be 1 or 2");
  const size_t dims[] = {axis};
  const ir::Buffer sum = reduce_dims(
      ctx, "norm_sum", ctx.shape(0), dims, true, Combiner::kSum, [&](std::span<const Expr> indices) {
        const Expr x = ir::load(ctx.in(0), Exprs(indices.begin(), indices.end()));
        return p == 2 ? x * x : ir::call(Intrinsic::kAbs, {x});
      });
  std::vector<ir::Axis> out = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(out);
  const Expr total = read_reduced(sum, vars);
  const Expr zero = ir::make_const(ctx.dtype(0), 0);
  Expr body =
      ir::select(total == zero, zero, ir::load(ctx.in(0), vars) / (p == 2 ? square_root_of(total) : total));
  return Buffers{ctx.compute("lp_norm", std::move(out), std::move(body))};
}

// (x - mean) / (standard deviation + 1e-9), as in the operator's function body.
Result<Buffers> emit_mean_variance_norm(OpContext& ctx) {
  const auto axes_attr = ctx.ints_attr("axes").value_or(std::vector<int64_t>{0, 2, 3});
  TS_ASSIGN_OR_RETURN(const std::vector<size_t> dims, ctx.normalize_axes(axes_attr, ctx.rank(0)));
  const Moments m = emit_moments(ctx, ctx.in(0), dims);
  std::vector<ir::Axis> out = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(out);
  Expr body = (ir::load(ctx.in(0), vars) - m.mean(vars)) /
              (square_root_of(m.variance(vars)) + ir::make_const(ctx.dtype(0), 1e-9));
  return Buffers{ctx.compute("mean_variance_norm", std::move(out), std::move(body))};
}

}  // namespace

std::span<const OpEntry> normalization_operators() {
  static const OpEntry kEntries[] = {
      {"BatchNormalization", "f:TFFFF", emit_batch_norm, 0, 6},
      {"GroupNormalization", "f:TTT", emit_group_norm},
      {"InstanceNormalization", "f:TTT", emit_instance_norm},
      {"LRN", "f:T", emit_lrn},
      {"LayerNormalization", "f:TTt", emit_layer_norm, kStatistics},
      {"LpNormalization", "f:T", emit_lp_norm},
      {"MeanVarianceNormalization", "f:T", emit_mean_variance_norm},
      {"RMSNormalization", "f:TT", emit_rms_norm},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
