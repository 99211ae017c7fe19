// Pooling over windows and over whole feature maps.
#include <algorithm>

#include "graph/ops/reduction.h"
#include "graph/ops/registry.h"
#include "graph/ops/window.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;

Result<Window> read_pool_window(OpContext& ctx) {
  if (ctx.rank(0) < 3) {
    return ctx.invalid("data must have rank 3 or more; it is " + describe(ctx.dtype(0), ctx.shape(0)));
  }
  if (!ctx.has_attr("kernel_shape")) return ctx.invalid("attribute kernel_shape is missing");
  const Shape& x = ctx.shape(0);
  return read_window(ctx, Shape(x.begin() + 2, x.end()),
                     ctx.geometry_attr("kernel_shape", ctx.rank(0) - 2, 1));
}

struct PoolAxes {
  std::vector<ir::Axis> spatial, reduce;
  Exprs out, r;
};

PoolAxes pool_axes(const ir::Buffer& x, const Window& window) {
  PoolAxes axes;
  axes.spatial = axes_for({x->shape[0], x->shape[1]});
  for (size_t d = 0; d < window.rank(); ++d) {
    axes.spatial.push_back({ir::Var("o" + std::to_string(d)), window.output[d]});
    axes.out.push_back(axes.spatial.back().var);
    axes.r.push_back(add_reduce_axis(axes.reduce, "r" + std::to_string(d), window.kernel[d]));
  }
  return axes;
}

// Applies the combiner to f(element) over each window.
ir::Buffer pool(OpContext& ctx, const std::string& name, const ir::Buffer& data, const Window& window,
                ir::Combiner combiner, const std::function<Expr(Expr)>& f) {
  PoolAxes axes = pool_axes(data, window);
  Expr body =
      f(ir::load(data, window_indices(window, axes.spatial[0].var, axes.spatial[1].var, axes.out, axes.r)));
  if (combiner == ir::Combiner::kSum && !axes.reduce.empty())
    return reduce_sum(ctx, name, std::move(axes.spatial), std::move(axes.reduce), std::move(body));
  const ir::Combiner used = axes.reduce.empty() ? ir::Combiner::kNone : combiner;
  return ctx.reduce(name, std::move(axes.spatial), std::move(axes.reduce), used, std::move(body));
}

Expr identity(Expr e) { return e; }

Result<Buffers> emit_max_pool(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Window window, read_pool_window(ctx));
  const ir::DType dtype = ctx.dtype(0);
  const Expr lowest = ir::identity_of(ir::Combiner::kMax, dtype);
  const ir::Buffer data = pad_for_windows(ctx, ctx.in(0), window, lowest);
  if (!ctx.wants_output(1)) {
    return Buffers{pool(ctx, "max_pool", data, window, ir::Combiner::kMax, identity)};
  }
  // Indices of the maxima in the flattened input (N, C, spatial... row-major, or with the spatial
  // dimensions column-major if storage_order is 1).
  const bool column_major = ctx.int_attr("storage_order", 0) != 0;
  PoolAxes axes = pool_axes(data, window);
  // A window of one element has no reduce axis, but reduce_arg() needs one.
  if (axes.reduce.empty()) axes.reduce.push_back({ir::Var("r"), 1});
  const Shape& x = ctx.shape(0);
  Expr index = 0;
  for (size_t k = 0; k < window.rank(); ++k) {
    const size_t d = column_major ? window.rank() - 1 - k : k;
    const Expr position = axes.out[d] * Expr(window.strides[d]) + axes.r[d] * Expr(window.dilations[d]) -
                          Expr(window.pads_begin[d]);
    index = index * Expr(window.input[d]) + position;
  }
  const Expr n = axes.spatial[0].var;
  const Expr c = axes.spatial[1].var;
  index = index + (n * Expr(x[1]) + c) * Expr(product(window.input));
  const Expr value = ir::load(data, window_indices(window, n, c, axes.out, axes.r));
  return ctx.reduce_arg("max_pool", std::move(axes.spatial), std::move(axes.reduce), ir::Combiner::kArgMax,
                        value, index);
}

Result<Buffers> emit_average_pool(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Window window, read_pool_window(ctx));
  const bool include_pad = ctx.int_attr("count_include_pad", 0) != 0;
  const ir::DType dtype = ctx.dtype(0);
  const ir::Buffer data = pad_for_windows(ctx, ctx.in(0), window, ir::make_const(dtype, 0));
  const ir::Buffer sum = pool(ctx, "pool_sum", data, window, ir::Combiner::kSum, identity);
  if (ctx.error()) return *ctx.error();  // otherwise the extents below may be unreasonable

  // Number of elements of the window that count: those inside the input, or inside the padded
  // input.
  std::vector<ir::Axis> axes = axes_for(sum->shape);
  const Exprs vars = vars_of(axes);
  int64_t constant_count = 1;
  Expr count;
  for (size_t d = 0; d < window.rank(); ++d) {
    const int64_t begin = include_pad ? 0 : window.pads_begin[d];
    const int64_t end =
        window.pads_begin[d] + window.input[d] + (include_pad ? window.pads_end[d] : 0);  // exclusive
    if (begin == 0 && window.covered(d) <= end) {
      constant_count *= window.kernel[d];
      continue;
    }
    const Expr start = vars[d + 2] * Expr(window.strides[d]);
    const int64_t dilation = window.dilations[d];
    // Counts taps k with begin <= start + k * dilation < end.
    const Expr first = ir::max(ir::floordiv(Expr(begin + dilation - 1) - start, dilation), 0);
    const Expr last = ir::min(ir::floordiv(Expr(end + dilation - 1) - start, dilation), window.kernel[d]);
    const Expr inside = ir::max(last - first, 0);
    count = count.defined() ? count * inside : inside;
  }
  Expr divisor = ir::make_const(dtype, constant_count);
  // The average of a window that contains only padding is 0 / 0.
  if (count.defined()) divisor = ir::cast(dtype, count * Expr(constant_count));
  return Buffers{ctx.compute("average", std::move(axes), ir::load(sum, vars) / divisor)};
}

// LpPool computes root(sum of power(|x|, p), p) over each window: power is x^p, root is x^(1/p).
Expr power(const Expr& x, double p) {
  if (p == 1) return x;
  if (p == 2) return x * x;
  return ir::call(ir::Intrinsic::kPow, {x, ir::make_const(x.dtype(), p)});
}

Expr root(const Expr& x, double p) {
  if (p == 1) return x;
  if (p == 2) return ir::call(ir::Intrinsic::kSqrt, {x});
  return ir::call(ir::Intrinsic::kPow, {x, ir::make_const(x.dtype(), 1.0 / p)});
}

Result<Buffers> emit_lp_pool(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Window window, read_pool_window(ctx));
  const double p = ctx.int_attr("p", 2);
  const ir::Buffer data = pad_for_windows(ctx, ctx.in(0), window, ir::make_const(ctx.dtype(0), 0));
  const ir::Buffer sum = pool(ctx, "pool_sum", data, window, ir::Combiner::kSum,
                              [p](const Expr& x) { return power(ir::call(ir::Intrinsic::kAbs, {x}), p); });
  return Buffers{map_elements(ctx, "root", sum, [p](const Expr& x) { return root(x, p); })};
}

// Reduces all spatial dimensions, which are kept with extent 1.
Result<ir::Buffer> global_pool(OpContext& ctx, const std::string& name, ir::Combiner combiner,
                               const std::function<Expr(Expr)>& f) {
  if (ctx.rank(0) < 3) {
    return ctx.invalid("data must have rank 3 or more; it is " + describe(ctx.dtype(0), ctx.shape(0)));
  }
  Shape out = ctx.shape(0);
  std::fill(out.begin() + 2, out.end(), 1);
  std::vector<ir::Axis> spatial = axes_for(out);
  std::vector<ir::Axis> reduce;
  Exprs indices = {spatial[0].var, spatial[1].var};
  for (size_t d = 2; d < out.size(); ++d) {
    indices.push_back(add_reduce_axis(reduce, "r" + std::to_string(d - 2), ctx.shape(0)[d]));
  }
  Expr body = f(ir::load(ctx.in(0), indices));
  if (combiner == ir::Combiner::kSum && !reduce.empty())
    return reduce_sum(ctx, name, std::move(spatial), std::move(reduce), std::move(body));
  const ir::Combiner used = reduce.empty() ? ir::Combiner::kNone : combiner;
  return ctx.reduce(name, std::move(spatial), std::move(reduce), used, std::move(body));
}

Result<Buffers> emit_global_max_pool(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(ir::Buffer out, global_pool(ctx, "global_max_pool", ir::Combiner::kMax, identity));
  return Buffers{out};
}

Result<Buffers> emit_global_average_pool(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ir::Buffer sum,
                      global_pool(ctx, "global_pool_sum", ir::Combiner::kSum, identity));
  const Shape& x = ctx.shape(0);
  const double count = product(std::span(x).subspan(2));
  return Buffers{map_elements(ctx, "average", sum,
                              [count](const Expr& e) { return e / ir::make_const(e.dtype(), count); })};
}

Result<Buffers> emit_global_lp_pool(OpContext& ctx) {
  const double p = ctx.int_attr("p", 2);
  TS_ASSIGN_OR_RETURN(const ir::Buffer sum,
                      global_pool(ctx, "global_pool_sum", ir::Combiner::kSum, [p](const Expr& x) {
                        return power(ir::call(ir::Intrinsic::kAbs, {x}), p);
                      }));
  return Buffers{map_elements(ctx, "root", sum, [p](const Expr& x) { return root(x, p); })};
}

}  // namespace

std::span<const OpEntry> pool_operators() {
  static const OpEntry kEntries[] = {
      {"MaxPool", "n:T", emit_max_pool, kPicksElements},
      {"AveragePool", "f:T", emit_average_pool},
      {"LpPool", "f:T", emit_lp_pool, 0, 7},
      {"GlobalMaxPool", "n:T", emit_global_max_pool, kPicksElements},
      {"GlobalAveragePool", "f:T", emit_global_average_pool},
      {"GlobalLpPool", "f:T", emit_global_lp_pool},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
