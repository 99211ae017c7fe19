// Windows and discrete Fourier transforms.
#include <cmath>
#include <numbers>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n = size, or size - 1 if not periodic.
Result<Buffers> emit_window(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ctx.constant_ints(0, "size"));
  if (sizes.size() != 1 || sizes[0] < 1 || sizes[0] > kMaxGeometry)
    return ctx.invalid("size must be positive");
  const auto dtype = onnx_dtype(ctx.int_attr("output_datatype", 1));
  if (!dtype || !ir::is_float(*dtype)) return ctx.unsupported("an output that is not a float");
  const bool periodic = ctx.int_attr("periodic", 1) != 0;
  double a[3] = {0.5, 0.5, 0};
  if (ctx.node().op == "HammingWindow") {
    a[0] = 25.0 / 46;
    a[1] = 1 - a[0];
  } else if (ctx.node().op == "BlackmanWindow") {
    a[0] = 0.42;
    a[2] = 0.08;
  }
  const int64_t period = std::max<int64_t>(periodic ? sizes[0] : sizes[0] - 1, 1);
  std::vector<ir::Axis> axes = axes_for({sizes[0]});
  const auto f64 = [](double v) { return ir::make_const(DType::kF64, v); };
  const Expr angle = ir::cast(DType::kF64, axes[0].var) * f64(2 * std::numbers::pi / period);
  Expr body = f64(a[0]) - f64(a[1]) * ir::call(Intrinsic::kCos, {angle});
  if (a[2] != 0) body = body + f64(a[2]) * ir::call(Intrinsic::kCos, {f64(2) * angle});
  return Buffers{ctx.compute("window", std::move(axes), ir::cast(*dtype, body))};
}

// Real and imaginary part of sum_t x[t] exp(-2 pi i k t / n) as one reduction; the last dimension
// selects the part. read(part, t) reads the signal.
ir::Buffer fourier(OpContext& ctx, std::vector<ir::Axis> axes, const Expr& k, int64_t samples, int64_t length,
                   bool inverse, bool complex_input, DType dtype,
                   const std::function<Expr(int part, const Expr& t)>& read) {
  std::vector<ir::Axis> reduce = {{ir::Var("t"), samples}};
  const Expr t = reduce[0].var;
  const Expr part = axes.back().var;
  // Reducing k * t modulo the length keeps the angle small and exact.
  const double unit = (inverse ? 2 : -2) * std::numbers::pi / length;
  const Expr angle = ir::cast(DType::kF64, ir::floormod(k * t, length)) * ir::make_const(DType::kF64, unit);
  const Expr cosine = ir::cast(dtype, ir::call(Intrinsic::kCos, {angle}));
  const Expr sine = ir::cast(dtype, ir::call(Intrinsic::kSin, {angle}));
  Expr real = read(0, t) * cosine;
  Expr imaginary = read(0, t) * sine;
  if (complex_input) {
    real = real - read(1, t) * sine;
    imaginary = imaginary + read(1, t) * cosine;
  }
  return ctx.reduce("dft", std::move(axes), std::move(reduce), Combiner::kSum,
                    ir::select(part == 0, real, imaginary));
}

Result<Buffers> emit_dft(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  if (x.size() < 2 || (x.back() != 1 && x.back() != 2)) {
    return ctx.invalid("the last dimension must hold real or complex numbers");
  }
  int64_t axis_number = ctx.int_attr("axis", 1);
  if (ctx.has(2)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ctx.constant_ints(2, "axis"));
    if (axes.size() != 1) return ctx.invalid("input 2 (axis) must be one number");
    axis_number = axes[0];
  } else if (ctx.opset() >= 20) {
    axis_number = -2;
  }
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(axis_number, x.size()));
  if (axis + 1 == x.size()) return ctx.invalid("the axis must not be the last one");
  int64_t length = x[axis];
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, ctx.constant_ints(1, "dft_length"));
    if (lengths.size() != 1) return ctx.invalid("input 1 (dft_length) must be one number");
    length = lengths[0];
  }
  if (length < 1 || length > kMaxGeometry) return ctx.invalid("the length must be positive");
  const bool inverse = ctx.int_attr("inverse", 0) != 0;
  const bool onesided = ctx.int_attr("onesided", 0) != 0;
  if (inverse && onesided) return ctx.unsupported("the inverse of a onesided transform");
  Shape shape = x;
  shape.back() = 2;
  shape[axis] = onesided ? length / 2 + 1 : length;
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  const ir::Buffer sum = fourier(ctx, axes, vars[axis], std::min(length, x[axis]), length, inverse,
                                 x.back() == 2, ctx.dtype(0), [&](int part, const Expr& t) {
                                   Exprs at = vars;
                                   at[axis] = t;
                                   at.back() = part;
                                   return ir::load(ctx.in(0), at);
                                 });
  if (!inverse) return Buffers{sum};
  return Buffers{map_elements(ctx, "idft", sum,
                              [length](const Expr& e) { return e / ir::make_const(e.dtype(), length); })};
}

// Inputs: signal (batch, samples, 1 or 2), frame_step, window, frame_length.
Result<Buffers> emit_stft(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  if (x.size() < 2 || x.size() > 3 || (x.size() == 3 && x[2] != 1 && x[2] != 2)) {
    return ctx.invalid("the signal must have shape (batch, samples) or (batch, samples, 1 or 2)");
  }
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ctx.constant_ints(1, "frame_step"));
  int64_t length = ctx.has(2) && ctx.rank(2) == 1 ? ctx.shape(2)[0] : 0;
  if (ctx.has(3)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, ctx.constant_ints(3, "frame_length"));
    if (lengths.size() == 1) length = lengths[0];
  }
  if (steps.size() != 1 || steps[0] < 1 || length < 1 || length > x[1] ||
      (ctx.has(2) && ctx.shape(2) != Shape{length})) {
    return ctx.invalid("frame_step, frame_length and window do not fit the signal");
  }
  const bool complex_input = x.size() == 3 && x[2] == 2;
  const bool onesided = ctx.int_attr("onesided", 1) != 0;
  if (complex_input && onesided) return ctx.invalid("a complex signal has no onesided transform");
  const int64_t step = std::min(steps[0], kMaxGeometry);
  std::vector<ir::Axis> axes =
      axes_for({x[0], (x[1] - length) / step + 1, onesided ? length / 2 + 1 : length, 2});
  const Exprs vars = vars_of(axes);
  return Buffers{fourier(ctx, axes, vars[2], length, length, false, complex_input, ctx.dtype(0),
                         [&](int part, const Expr& t) {
                           Exprs at = {vars[0], vars[1] * Expr(step) + t};
                           if (x.size() == 3) at.push_back(part);
                           const Expr sample = ir::load(ctx.in(0), at);
                           return ctx.has(2) ? sample * ir::load(ctx.in(2), {t}) : sample;
                         })};
}

}  // namespace

std::span<const OpEntry> signal_operators() {
  static const OpEntry kEntries[] = {
      {"BlackmanWindow", "i:T", emit_window}, {"DFT", "f:Tii", emit_dft},
      {"HammingWindow", "i:T", emit_window},  {"HannWindow", "i:T", emit_window},
      {"STFT", "f:TIti", emit_stft},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
