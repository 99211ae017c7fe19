// Operators whose result depends only on shapes or constants.
#include <cmath>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;

Result<Buffers> emit_constant_of_shape(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Shape shape, ctx.constant_ints(0, "shape"));
  if (!is_reasonable(shape))
    return ctx.invalid("the shape is unreasonable: " + describe(ir::DType::kI64, shape));
  Expr value = ir::make_const(ir::DType::kF32, 0);
  if (ctx.has_attr("value")) {
    const auto* tensor = ctx.node().find<lower::Tensor>("value");
    if (tensor == nullptr || tensor->num_elements() != 1) {
      return ctx.invalid("attribute value is not a tensor of one element");
    }
    value = scalar_imm(tensor->dtype, tensor->at(0));
  }
  return Buffers{ctx.compute("fill", axes_for(shape), value)};
}

// Returns dimensions [start, end) of the input (opset 15; all of them before).
Result<Buffers> emit_shape(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const auto rank = std::ssize(x);
  const auto clamp = [rank](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? std::max(axis, -rank - 1) + rank : axis, 0, rank);
  };
  const int64_t start = clamp(ctx.int_attr("start", 0));
  const int64_t end = std::max(clamp(ctx.int_attr("end", rank)), start);
  std::vector<ir::Axis> axes = axes_for({end - start});
  const Expr i = axes[0].var;
  Expr body = 0;
  for (int64_t k = end; k-- > start;) {
    const Expr extent = x[k];
    body = k == end - 1 ? extent : ir::select(i == Expr(k - start), extent, body);
  }
  return Buffers{ctx.compute("shape", std::move(axes), std::move(body))};
}

Result<Buffers> emit_size(OpContext& ctx) {
  return Buffers{ctx.compute("size", {}, Expr(product(ctx.shape(0))))};
}

// start + i * delta for i < max(ceil((limit - start) / delta), 0)
Result<Buffers> emit_range(OpContext& ctx) {
  ir::Scalar values[3];
  for (size_t i = 0; i < 3; ++i) {
    const lower::Tensor* tensor = ctx.constant(i);
    if (tensor == nullptr) {
      return ctx.unsupported("input " + std::to_string(i) +
                             " must be constant; it is only known at run time");
    }
    if (tensor->num_elements() != 1) return ctx.invalid("input " + std::to_string(i) + " must be a scalar");
    values[i] = tensor->at(0);
  }
  const ir::DType dtype = ctx.dtype(0);
  const auto number = [&](const ir::Scalar& s) { return ir::is_float(dtype) ? s.f : s.i; };
  const double count = std::ceil((number(values[1]) - number(values[0])) / number(values[2]));
  if (!std::isfinite(count) || count > kMaxElements) {
    return ctx.invalid("the range is endless or too long");
  }
  std::vector<ir::Axis> axes = axes_for({count > 0 ? static_cast<int64_t>(count) : 0});
  Expr body = scalar_imm(dtype, values[0]) + ir::cast(dtype, axes[0].var) * scalar_imm(dtype, values[2]);
  return Buffers{ctx.compute("range", std::move(axes), std::move(body))};
}

Result<Buffers> emit_eye_like(OpContext& ctx) {
  if (ctx.rank(0) != 2) return ctx.invalid("the input must be a matrix");
  ir::DType dtype = ctx.dtype(0);
  if (ctx.has_attr("dtype")) {
    const auto wanted = onnx_dtype(ctx.int_attr("dtype", 1));
    if (!wanted) return ctx.unsupported("the type " + onnx_type_name(ctx.int_attr("dtype", 1)));
    dtype = *wanted;
  }
  const int64_t k = std::clamp(ctx.int_attr("k", 0), -kMaxElements, kMaxElements);
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Expr i = axes[0].var;
  const Expr j = axes[1].var;
  Expr body = ir::select(j == i + Expr(k), ir::make_const(dtype, 1), ir::make_const(dtype, 0));
  return Buffers{ctx.compute("eye", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> constant_operators() {
  static const OpEntry kEntries[] = {
      {"ConstantOfShape", "i:L", emit_constant_of_shape},
      {"EyeLike", "a:T", emit_eye_like},
      {"Range", "n:TTT", emit_range},
      {"Shape", "a:T", emit_shape, kReadsShape},
      {"Size", "a:T", emit_size, kReadsShape},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
