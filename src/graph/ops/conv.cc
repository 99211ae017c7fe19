// Conv and ConvTranspose. Layouts: data NC(spatial), weights KC(spatial) and CK(spatial).
#include <algorithm>

#include "graph/ops/registry.h"
#include "graph/ops/window.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;

// Returns out[n, k, ...] + bias[k].
ir::Buffer add_bias(OpContext& ctx, const ir::Buffer& x, const ir::Buffer& bias) {
  std::vector<ir::Axis> axes = axes_for(x->shape);
  const Exprs vars = vars_of(axes);
  Expr body = ir::load(x, vars) + ir::load(bias, {vars[1]});
  return ctx.compute("bias_add", std::move(axes), std::move(body));
}

Status check_bias(OpContext& ctx, size_t input, int64_t channels) {
  if (!ctx.has(input) || ctx.shape(input) == Shape{channels}) return {};
  return ctx.invalid("the bias has shape " + describe(ctx.dtype(input), ctx.shape(input)) + " instead of [" +
                     std::to_string(channels) + "]");
}

// Checks that data (N, C, ...) and weights have the same rank >= 3; returns the kernel's extents.
Result<Shape> check_ranks(OpContext& ctx) {
  if (ctx.rank(0) < 3 || ctx.rank(0) != ctx.rank(1)) {
    return ctx.invalid("data and weights must have the same rank, at least 3; they are " +
                       describe(ctx.dtype(0), ctx.shape(0)) + " and " + describe(ctx.dtype(1), ctx.shape(1)));
  }
  const Shape& weights = ctx.shape(1);
  Shape kernel(weights.begin() + 2, weights.end());
  if (ctx.has_attr("kernel_shape") && ctx.geometry_attr("kernel_shape", kernel.size(), 1) != kernel) {
    return ctx.invalid("attribute kernel_shape disagrees with the weights " +
                       describe(ctx.dtype(1), weights));
  }
  return kernel;
}

Result<Buffers> emit_conv(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Shape kernel, check_ranks(ctx));
  const Shape& x = ctx.shape(0);
  const Shape& w = ctx.shape(1);
  const int64_t groups = ctx.int_attr("group", 1);
  if (groups < 1 || w[0] < 1 || w[0] % groups != 0 || groups > w[0] || w[1] > kMaxElements / groups ||
      w[1] * groups != x[1]) {
    return ctx.invalid("group " + std::to_string(groups) + " does not fit data " + describe(ctx.dtype(0), x) +
                       " and weights " + describe(ctx.dtype(1), w));
  }
  TS_RETURN_IF_ERROR(check_bias(ctx, 2, w[0]));
  TS_ASSIGN_OR_RETURN(const Window window, read_window(ctx, Shape(x.begin() + 2, x.end()), kernel));
  const ir::Buffer data = pad_for_windows(ctx, ctx.in(0), window, ir::make_const(ctx.dtype(0), 0));
  ir::Buffer out =
      convolve(ctx, convolution_name("conv", kernel.size(), groups, w[1]), data, ctx.in(1), window, groups);
  if (ctx.has(2)) out = add_bias(ctx, out, ctx.in(2));
  return Buffers{out};
}

// Gather form: a stage "dilate" spreads the input by the strides and pads it, so that the
// convolution with the flipped kernel has a dense, regular reduction.
Result<Buffers> emit_conv_transpose(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Shape kernel, check_ranks(ctx));
  const Shape& x = ctx.shape(0);
  const Shape& w = ctx.shape(1);  // C, K / groups, kernel...
  const size_t rank = kernel.size();
  const int64_t groups = ctx.int_attr("group", 1);
  if (groups < 1 || x[1] != w[0] || w[0] < 1 || w[1] < 1 || w[0] % groups != 0 || groups > w[0]) {
    return ctx.invalid("group " + std::to_string(groups) + " does not fit data " + describe(ctx.dtype(0), x) +
                       " and weights " + describe(ctx.dtype(1), w));
  }
  const int64_t filters_per_group = w[1];
  const int64_t channels_per_group = w[0] / groups;
  TS_RETURN_IF_ERROR(check_bias(ctx, 2, filters_per_group * groups));
  TS_ASSIGN_OR_RETURN(const TransposedWindow g,
                      read_transposed_window(ctx, Shape(x.begin() + 2, x.end()), kernel));

  ir::Buffer data = ctx.in(0);
  {
    std::vector<ir::Axis> axes = axes_for({x[0], x[1]});
    Exprs source = vars_of(axes);
    Expr inside;
    const auto require = [&inside](const Expr& condition) {
      inside = inside.defined() ? inside && condition : condition;
    };
    for (size_t d = 0; d < rank; ++d) {
      // Position p of the spread input holds data element (p - lead) / stride.
      const int64_t lead = (kernel[d] - 1) * g.dilations[d] - g.pads_begin[d];
      const int64_t extent = g.output[d] + (kernel[d] - 1) * g.dilations[d];
      axes.push_back({ir::Var("s" + std::to_string(d)), extent});
      const Expr offset = Expr(axes.back().var) - Expr(lead);
      if (lead > 0) require(offset >= 0);
      if (extent - lead > (x[d + 2] - 1) * g.strides[d] + 1) {
        require(offset <= Expr((x[d + 2] - 1) * g.strides[d]));
      }
      if (g.strides[d] > 1) require(ir::floormod(offset, g.strides[d]) == 0);
      source.push_back(g.strides[d] > 1 ? ir::floordiv(offset, g.strides[d]) : offset);
    }
    Expr body = ir::load(data, source);
    if (inside.defined()) body = ir::select(inside, body, ir::make_const(ctx.dtype(0), 0));
    data = ctx.compute("dilate", std::move(axes), std::move(body));
  }

  Shape out_shape = {x[0], filters_per_group * groups};
  out_shape.insert(out_shape.end(), g.output.begin(), g.output.end());
  std::vector<ir::Axis> axes = axes_for(out_shape);
  const Exprs vars = vars_of(axes);
  std::vector<ir::Axis> reduce;
  const Expr rc = add_reduce_axis(reduce, "rc", channels_per_group);
  const Expr group = groups == 1 ? Expr(0) : ir::floordiv(vars[1], filters_per_group);
  const Expr filter = groups == 1 ? vars[1] : ir::floormod(vars[1], filters_per_group);
  const Expr channel = group * Expr(channels_per_group) + rc;
  Exprs data_index = {vars[0], channel};
  Exprs weight_index = {channel, filter};
  for (size_t d = 0; d < rank; ++d) {
    const Expr r = add_reduce_axis(reduce, "r" + std::to_string(d), kernel[d]);
    data_index.push_back(vars[d + 2] + r * Expr(g.dilations[d]));
    weight_index.push_back(Expr(kernel[d] - 1) - r);
  }
  const ir::Combiner combiner = reduce.empty() ? ir::Combiner::kNone : ir::Combiner::kSum;
  ir::Buffer out =
      ctx.reduce(convolution_name("conv_transpose", rank, groups, channels_per_group), std::move(axes),
                 std::move(reduce), combiner, ir::load(data, data_index) * ir::load(ctx.in(1), weight_index));
  if (ctx.has(2)) out = add_bias(ctx, out, ctx.in(2));
  return Buffers{out};
}

}  // namespace

std::span<const OpEntry> conv_operators() {
  static const OpEntry kEntries[] = {
      {"Conv", "f:TTt", emit_conv, kRoundsFactors},
      {"ConvTranspose", "f:TTt", emit_conv_transpose},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
