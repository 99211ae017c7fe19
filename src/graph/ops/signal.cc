// Windows. Fourier transforms are imported as products (onnx/expand_signal.cc).
#include <cmath>
#include <numbers>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

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

}  // namespace

std::span<const OpEntry> signal_operators() {
  static const OpEntry kEntries[] = {
      {"BlackmanWindow", "i:T", emit_window},
      {"HammingWindow", "i:T", emit_window},
      {"HannWindow", "i:T", emit_window},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
