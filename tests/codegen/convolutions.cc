#include "codegen/convolutions.h"

#include <utility>

namespace tensorsmith::test {

using ir::Axis;
using ir::DType;
using ir::Expr;

namespace {

// Returns the values in the order of the layout.
template <class T>
std::vector<T> ordered(bool channels_last, T n, T channel, T y, T x) {
  if (channels_last) return {std::move(n), std::move(y), std::move(x), std::move(channel)};
  return {std::move(n), std::move(channel), std::move(y), std::move(x)};
}

}  // namespace

ir::Workload convolution(const Convolution& c) {
  const bool last = c.channels_last;
  const int64_t wide = c.width + 2 * c.pad, high = c.height + 2 * c.pad;
  const int64_t out_y = (high - c.kernel) / c.stride + 1, out_x = (wide - c.kernel) / c.stride + 1;
  const auto data = ir::placeholder("X", c.dtype, ordered<int64_t>(last, c.n, c.channels, c.height, c.width));
  const bool bytes = !ir::is_float(c.dtype);
  std::vector<int64_t> shape = {c.outputs, c.channels, c.kernel, c.kernel};
  if (bytes)
    shape = {c.outputs, c.kernel, c.kernel, c.channels};
  else if (last)
    shape = {c.kernel, c.kernel, c.channels, c.outputs};
  const auto weights = ir::placeholder("W", c.dtype, shape, true);
  ir::Workload workload;
  workload.operations = {data, weights};
  auto source = data;
  if (c.pad > 0) {
    const Axis n{ir::Var("n"), c.n}, k{ir::Var("c"), c.channels}, y{ir::Var("y"), high},
        x{ir::Var("x"), wide};
    const Expr v = Expr(y.var) - Expr(c.pad), h = Expr(x.var) - Expr(c.pad);
    const Expr inside = v >= 0 && v < Expr(c.height) && h >= 0 && h < Expr(c.width);
    const Expr element = ir::load(data->output(), ordered<Expr>(last, n.var, k.var, v, h));
    source = ir::compute(
        "pad", ordered<Axis>(last, n, k, y, x), {}, ir::Combiner::kNone,
        {ir::select(inside, element, bytes ? ir::int_imm(c.dtype, 0) : ir::float_imm(c.dtype, 0))});
    workload.operations.push_back(source);
  }
  const auto axes = [&] {
    return ordered<Axis>(last, {ir::Var("n"), c.n}, {ir::Var("o"), c.outputs}, {ir::Var("y"), out_y},
                         {ir::Var("x"), out_x});
  };
  const auto spatial = axes();
  const Expr n = spatial[0].var, o = spatial[last ? 3 : 1].var, y = spatial[last ? 1 : 2].var,
             x = spatial[last ? 2 : 3].var;
  const Axis k{ir::Var("k"), c.channels}, ky{ir::Var("ky"), c.kernel}, kx{ir::Var("kx"), c.kernel};
  const Expr at_y = y * Expr(c.stride) + Expr(ky.var), at_x = x * Expr(c.stride) + Expr(kx.var);
  const Expr a = ir::load(source->output(), ordered<Expr>(last, n, k.var, at_y, at_x));
  std::vector<Expr> weight = {o, k.var, ky.var, kx.var};
  if (bytes)
    weight = {o, ky.var, kx.var, k.var};
  else if (last)
    weight = {ky.var, kx.var, k.var, o};
  const Expr b = ir::load(weights->output(), weight);
  const DType sum = bytes ? DType::kI32 : DType::kF32;
  const auto factor = [&](const Expr& e) {
    return c.dtype == DType::kF32 ? ir::call(ir::Intrinsic::kRoundTf32, {e}) : ir::cast(sum, e);
  };
  const auto sums = ir::compute("C", spatial, {k, ky, kx}, ir::Combiner::kSum, {factor(a) * factor(b)});
  workload.operations.push_back(sums);
  workload.outputs = {sums->output()};
  if (!c.epilogue) return workload;
  const auto own = axes();
  std::vector<Expr> place;
  for (const Axis& axis : own) place.emplace_back(axis.var);
  const Expr more = ir::load(sums->output(), place) + ir::float_imm(DType::kF32, 1);
  const auto result = ir::compute("R", own, {}, ir::Combiner::kNone,
                                  {ir::cast(c.dtype, ir::max(more, ir::float_imm(DType::kF32, 0)))});
  workload.operations.push_back(result);
  workload.outputs = {result->output()};
  return workload;
}

}  // namespace tensorsmith::test
