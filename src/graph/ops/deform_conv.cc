// DeformConv: a convolution whose taps are displaced by computed offsets.
#include <algorithm>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;

// Interpolates the image linearly at a position between pixels; 0 outside. `row` and `column` are
// floats.
Expr sample(const ir::Buffer& x, const Expr& batch, const Expr& channel, const Expr& row,
            const Expr& column) {
  const DType dtype = row.dtype();
  const auto whole = [](const Expr& e) { return ir::call(Intrinsic::kFloor, {e}); };
  const Expr one = ir::make_const(dtype, 1), zero = ir::make_const(x->dtype, 0);
  const Expr corner[2] = {whole(row), whole(column)};
  const Expr part[2] = {row - corner[0], column - corner[1]};
  Expr sum;
  for (int k = 0; k < 4; ++k) {
    Exprs at = {batch, channel};
    Expr weight = one, inside = ir::bool_imm(true);
    for (int d = 0; d < 2; ++d) {
      const bool next = (d == 0 ? k / 2 : k % 2) != 0;
      const int64_t extent = x->shape[2 + d];
      const Expr place = next ? corner[d] + one : corner[d];
      const Expr share = next ? part[d] : one - part[d];
      const Expr last = ir::make_const(dtype, extent - 1);
      weight = d == 0 ? share : weight * share;
      inside = inside && place >= ir::make_const(dtype, 0) && place <= last;
      const Expr index = ir::cast(DType::kI64, ir::min(ir::max(place, ir::make_const(dtype, 0)), last));
      at.push_back(ir::min(ir::max(index, 0), extent - 1));
    }
    const Expr term = ir::select(inside, ir::load(x, at) * weight, zero);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

// Inputs: x (N, C, H, W), weights, offsets (N, 2 * taps * offset groups, OH, OW), bias, mask.
Result<Buffers> emit_deform_conv(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& w = ctx.shape(1);
  const Shape& offset = ctx.shape(2);
  if (x.size() != 4 || w.size() != 4 || offset.size() != 4)
    return ctx.unsupported("data, weights or offsets that do not have rank 4");
  const int64_t groups = ctx.int_attr("group", 1), offset_groups = ctx.int_attr("offset_group", 1);
  const std::vector<int64_t> strides = ctx.geometry_attr("strides", 2, 1);
  const std::vector<int64_t> dilations = ctx.geometry_attr("dilations", 2, 1);
  const std::vector<int64_t> pads = ctx.geometry_attr("pads", 4, 0);
  if (ctx.error()) return *ctx.error();
  if (groups < 1 || offset_groups < 1 || x[1] % groups != 0 || x[1] % offset_groups != 0 ||
      w[0] % groups != 0 || w[1] != x[1] / groups || x[2] < 1 || x[3] < 1 || w[1] < 1)
    return ctx.invalid("data " + describe(ctx.dtype(0), x) + ", weights " + describe(ctx.dtype(1), w) +
                       ", group and offset_group do not fit");
  Shape out = {x[0], w[0]};
  for (size_t d = 0; d < 2; ++d) {
    if (strides[d] < 1 || dilations[d] < 1 || pads[d] < 0 || pads[d + 2] < 0 || w[d + 2] < 1 ||
        w[d + 2] > kMaxGeometry)
      return ctx.invalid("strides, dilations, pads or the kernel are out of range");
    const int64_t room = x[d + 2] + pads[d] + pads[d + 2] - dilations[d] * (w[d + 2] - 1) - 1;
    if (room < 0) return ctx.invalid("the kernel is larger than the padded image");
    out.push_back(room / strides[d] + 1);
  }
  const int64_t taps = w[2] * w[3];
  if (offset != Shape{x[0], 2 * taps * offset_groups, out[2], out[3]})
    return ctx.invalid("the offsets are " + describe(ctx.dtype(2), offset));
  if (ctx.has(3) && ctx.shape(3) != Shape{w[0]})
    return ctx.invalid("the bias must have one value per channel");
  if (ctx.has(4) && ctx.shape(4) != Shape{x[0], taps * offset_groups, out[2], out[3]})
    return ctx.invalid("the mask is " + describe(ctx.dtype(4), ctx.shape(4)));

  // Computes the values that each tap reads.
  const DType dtype = ctx.dtype(0);
  std::vector<ir::Axis> axes = axes_for({x[0], x[1], w[2], w[3], out[2], out[3]});
  const Exprs v = vars_of(axes);
  const Expr tap = (ir::floordiv(v[1], Expr(x[1] / offset_groups)) * Expr(w[2]) + v[2]) * Expr(w[3]) + v[3];
  const auto position = [&](int64_t d) {
    const Expr place = v[4 + d] * Expr(strides[d]) + v[2 + d] * Expr(dilations[d]) - Expr(pads[d]);
    return ir::cast(dtype, place) + ir::load(ctx.in(2), {v[0], tap * Expr(2) + Expr(d), v[4], v[5]});
  };
  Expr body = sample(ctx.in(0), v[0], v[1], position(0), position(1));
  if (ctx.has(4)) body = body * ir::load(ctx.in(4), {v[0], tap, v[4], v[5]});
  const ir::Buffer columns = ctx.compute("deformed", std::move(axes), std::move(body));

  std::vector<ir::Axis> spatial = axes_for(out);
  const Exprs o = vars_of(spatial);
  std::vector<ir::Axis> reduce;
  const Expr channel = add_reduce_axis(reduce, "c", w[1]);
  const Expr row = add_reduce_axis(reduce, "y", w[2]);
  const Expr column = add_reduce_axis(reduce, "x", w[3]);
  const Expr input = groups == 1 ? channel : ir::floordiv(o[1], Expr(w[0] / groups)) * Expr(w[1]) + channel;
  Expr term = ir::load(columns, {o[0], input, row, column, o[2], o[3]}) *
              ir::load(ctx.in(1), {o[1], channel, row, column});
  const Combiner combiner = reduce.empty() ? Combiner::kNone : Combiner::kSum;
  const ir::Buffer sum =
      ctx.reduce("deform_conv", std::move(spatial), std::move(reduce), combiner, std::move(term));
  if (!ctx.has(3)) return Buffers{sum};
  std::vector<ir::Axis> with_bias = axes_for(out);
  const Exprs at = vars_of(with_bias);
  Expr total = ir::load(sum, at) + ir::load(ctx.in(3), {at[1]});
  return Buffers{ctx.compute("bias_add", std::move(with_bias), std::move(total))};
}

}  // namespace

std::span<const OpEntry> deform_conv_operators() {
  static const OpEntry kEntries[] = {{"DeformConv", "f:TTTtt", emit_deform_conv}};
  return kEntries;
}

}  // namespace tensorsmith::graph
