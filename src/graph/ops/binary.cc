// Elementwise operators of several tensors with NumPy broadcasting: arithmetic, comparisons, logic, Where.
#include <cctype>
#include <cmath>
#include <limits>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"
#include "ir/scalar.h"

namespace tensorsmith::graph {

namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::Intrinsic;

std::string lower_case(std::string name) {
  for (char& c : name) c = std::tolower(static_cast<unsigned char>(c));
  return name;
}

Result<Shape> broadcast_inputs(const OpContext& ctx) {
  Shape shape = ctx.shape(0);
  for (size_t i = 1; i < ctx.num_inputs(); ++i) {
    auto next = broadcast(shape, ctx.shape(i));
    if (!next) {
      return ctx.invalid("input " + std::to_string(i) + " " + describe(ctx.dtype(i), ctx.shape(i)) +
                         " does not broadcast with " + describe(ctx.dtype(0), shape));
    }
    shape = *std::move(next);
  }
  return shape;
}

// Before opset 7, the position of the second operand's dimensions was explicit: at attribute axis,
// or for a PRelu's slope at the channels.
Result<std::optional<size_t>> explicit_axis(OpContext& ctx) {
  if (ctx.opset() >= 7) return std::optional<size_t>();
  int64_t axis = -1;
  if (ctx.node().op == "PRelu") {
    if (ctx.rank(1) != 1 || ctx.shape(1)[0] == 1 || ctx.rank(0) < 2) return std::optional<size_t>();
    axis = 1;
  } else if (ctx.int_attr("broadcast", 0) == 0 || !ctx.has_attr("axis")) {
    return std::optional<size_t>();
  } else {
    axis = ctx.int_attr("axis", -1);
  }
  TS_ASSIGN_OR_RETURN(const size_t first, ctx.normalize_axis(axis, std::max<size_t>(ctx.rank(0), 1)));
  if (first + ctx.rank(1) > ctx.rank(0))
    return ctx.invalid("input 1 does not fit input 0 at axis " + std::to_string(axis));
  for (size_t d = 0; d < ctx.rank(1); ++d) {
    if (ctx.shape(1)[d] != 1 && ctx.shape(1)[d] != ctx.shape(0)[first + d]) {
      return ctx.invalid("input 1 does not fit input 0 at axis " + std::to_string(axis));
    }
  }
  return std::optional(first);
}

template <Expr (*F)(OpContext&, const Expr&, const Expr&)>
Result<Buffers> binary(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const std::optional<size_t> axis, explicit_axis(ctx));
  if (axis) {
    std::vector<ir::Axis> placed = axes_for(ctx.shape(0));
    const Exprs vars = vars_of(placed);
    Expr body = F(ctx, operand(ctx, 0, vars), operand(ctx, 1, std::span(vars).subspan(*axis, ctx.rank(1))));
    return Buffers{ctx.compute(lower_case(ctx.node().op), std::move(placed), std::move(body))};
  }
  TS_ASSIGN_OR_RETURN(const Shape shape, broadcast_inputs(ctx));
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  Expr body = F(ctx, operand(ctx, 0, vars), operand(ctx, 1, vars));
  return Buffers{ctx.compute(lower_case(ctx.node().op), std::move(axes), std::move(body))};
}

template <BinaryOp Op>
Expr plain(OpContext&, const Expr& a, const Expr& b) {
  return ir::binary(Op, a, b);
}
template <BinaryOp Op>
Expr arithmetic(OpContext&, const Expr& a, const Expr& b) {
  return wrapping(Op, a, b);
}

// Left fold over any number of inputs.
template <BinaryOp Op>
Result<Buffers> variadic(OpContext& ctx) {
  if (ctx.num_inputs() == 1) return Buffers{ctx.in(0)};
  TS_ASSIGN_OR_RETURN(const Shape shape, broadcast_inputs(ctx));
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  Expr body = operand(ctx, 0, vars);
  for (size_t i = 1; i < ctx.num_inputs(); ++i) body = ir::binary(Op, body, operand(ctx, i, vars));
  const bool mean = ctx.node().op == "Mean";
  if (mean) body = body / ir::make_const(body.dtype(), ctx.num_inputs());
  return Buffers{ctx.compute(lower_case(ctx.node().op), std::move(axes), std::move(body))};
}

// With fmod = 0, the remainder has the divisor's sign, also if it is 0 (floats since opset 28).
Expr mod(OpContext& ctx, const Expr& a, const Expr& b) {
  const bool fmod = ctx.int_attr("fmod", 0) != 0;
  if (ir::is_float(a.dtype())) {
    const Expr r = ir::call(Intrinsic::kFmod, {a, b});
    if (fmod) return r;
    const Expr zero = ir::make_const(a.dtype(), 0);
    const Expr signed_zero = ir::select(b < zero, ir::make_const(a.dtype(), -0.0), zero);
    return ir::select(r == zero, signed_zero, ir::select((r < zero) != (b < zero), r + b, r));
  }
  return fmod ? a - (a / b) * b : ir::floormod(a, b);
}

// Exact power of integers of any two dtypes, wrapped to the base's dtype.
Expr integer_pow(const Expr& a, const Expr& b) {
  const ir::DType dtype = a.dtype();
  if (b.dtype() == dtype) return ir::call(Intrinsic::kPow, {a, b});
  const ir::DType i64 = ir::DType::kI64;
  Expr exponent = ir::cast(i64, b);
  if (b.dtype() == ir::DType::kU64) {
    // Powers of odd numbers repeat after 2^62 steps; those of even numbers are 0 there.
    const Expr period = Expr(int64_t{1} << 62);
    const Expr rest = ir::binary(BinaryOp::kBitAnd, exponent, period - Expr(1));
    exponent = ir::select(exponent < Expr(0), ir::binary(BinaryOp::kBitOr, rest, period), exponent);
  }
  const Expr power = ir::cast(dtype, ir::call(Intrinsic::kPow, {ir::cast(i64, a), exponent}));
  if (ir::is_signed_int(dtype) || !ir::is_signed_int(b.dtype())) return power;
  // A large unsigned base does not count as -1.
  const Expr unit = ir::make_const(dtype, 1);
  return ir::select(exponent < Expr(0), ir::select(a == unit, unit, ir::make_const(dtype, 0)), power);
}

// Integer to a real power, truncated. Whole exponents are exact. For others, a result close to a
// whole number is rounded to it: 4 to the power 0.5 is 2, although the function returns
// 1.9999999999999998.
Expr truncated_pow(const Expr& a, const Expr& b) {
  const ir::DType f64 = ir::DType::kF64;
  const Expr exponent = ir::cast(f64, b);
  const Expr real = ir::call(Intrinsic::kPow, {ir::cast(f64, a), exponent});
  const Expr nearest = ir::call(Intrinsic::kRound, {real});
  const Expr tolerance = ir::call(Intrinsic::kAbs, {real}) * ir::make_const(f64, 1e-12);
  const Expr snapped = ir::select(ir::call(Intrinsic::kAbs, {real - nearest}) <= tolerance, nearest, real);
  const Expr whole = ir::call(Intrinsic::kTrunc, {exponent}) == exponent &&
                     ir::call(Intrinsic::kAbs, {exponent}) < ir::make_const(f64, 0x1p62);
  return ir::select(whole, integer_pow(a, ir::cast(ir::DType::kI64, exponent)), ir::cast(a.dtype(), snapped));
}

// The result has the base's dtype.
Expr pow(OpContext& ctx, const Expr& a, const Expr& b) {
  const ir::DType dtype = a.dtype();
  if (!ir::is_float(dtype)) return ir::is_float(b.dtype()) ? truncated_pow(a, b) : integer_pow(a, b);
  if (const lower::Tensor* exponent = ctx.constant(1); exponent != nullptr && exponent->num_elements() == 1) {
    const ir::Scalar value = exponent->at(0);
    const double e = ir::is_float(value.dtype) ? value.f : value.i;
    const Expr unit = ir::make_const(dtype, 1);
    const Expr zero = ir::make_const(dtype, 0);
    const Expr infinity = ir::make_const(dtype, std::numeric_limits<double>::infinity());
    // Unlike their roots, powers of -0 and -infinity are positive.
    const auto root = [&] { return ir::call(Intrinsic::kSqrt, {a + zero}); };
    if (e == 1.0) return a;
    if (e == 2.0) return a * a;
    if (e == 3.0) return a * a * a;
    if (e == 0.5) return ir::select(a == -infinity, infinity, root());
    if (e == -1.0) return unit / a;
    if (e == -0.5) return ir::select(a == -infinity, zero, unit / root());
    if (ir::scalar_float(dtype, e).f == e) return ir::call(Intrinsic::kPow, {a, ir::make_const(dtype, e)});
  }
  if (b.dtype() == dtype) return ir::call(Intrinsic::kPow, {a, b});
  // Computed in f64, which preserves the exponent's parity.
  const ir::DType f64 = ir::DType::kF64;
  return ir::cast(dtype, ir::call(Intrinsic::kPow, {ir::cast(f64, a), ir::cast(f64, b)}));
}

// A division costs as much as ten multiplications, so a divisor with an exact reciprocal becomes a
// factor.
Expr divide(OpContext&, const Expr& a, const Expr& b) {
  const auto* divisor = ir::as<ir::FloatImm>(b);
  if (divisor == nullptr) return a / b;
  int exponent = 0;
  const bool power_of_two = std::abs(std::frexp(divisor->value, &exponent)) == 0.5;
  const bool exact = power_of_two && std::abs(exponent) < 100;
  return exact ? a * ir::make_const(a.dtype(), 1.0 / divisor->value) : a / b;
}

// A right shift of a signed integer copies the sign, also by more than all bits (opset 28).
Expr bit_shift(OpContext& ctx, const Expr& a, const Expr& b) {
  const bool left = ctx.string_attr("direction", "") == "LEFT";
  const Expr shifted = ir::binary(left ? BinaryOp::kShl : BinaryOp::kShr, a, b);
  if (left || !ir::is_signed_int(a.dtype())) return shifted;
  const Expr zero = ir::make_const(a.dtype(), 0);
  const Expr inside = b >= zero && b < ir::make_const(a.dtype(), 8 * ir::bytes_of(a.dtype()));
  return ir::select(inside, shifted, ir::select(a < zero, ir::make_const(a.dtype(), -1), zero));
}

Expr exclusive_or(OpContext&, const Expr& a, const Expr& b) { return a != b; }

// `slope` broadcasts to x, but not vice versa.
Expr prelu(OpContext&, const Expr& x, const Expr& slope) {
  return ir::select(x < ir::make_const(x.dtype(), 0), wrapping(BinaryOp::kMul, x, slope), x);
}

// Swish of the gate, times the value (opset 28).
Expr swiglu(OpContext& ctx, const Expr& gate, const Expr& value) {
  const Expr unit = ir::make_const(gate.dtype(), 1);
  const Expr scaled = gate * ir::make_const(gate.dtype(), ctx.float_attr("alpha", 1.0));
  return gate * (unit / (unit + ir::call(Intrinsic::kExp, {-scaled}))) * value;
}

Result<Buffers> emit_where(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Shape shape, broadcast_inputs(ctx));
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  Expr body = ir::select(operand(ctx, 0, vars), operand(ctx, 1, vars), operand(ctx, 2, vars));
  return Buffers{ctx.compute("where", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> binary_operators() {
  static const OpEntry kEntries[] = {
      {"Add", "n:TT", binary<arithmetic<BinaryOp::kAdd>>, kElementwise, 6},
      {"And", "b:TT", binary<plain<BinaryOp::kAnd>>, kElementwise, 6},
      {"BitShift", "i:TT", binary<bit_shift>, kElementwise},
      {"BitwiseAnd", "i:TT", binary<plain<BinaryOp::kBitAnd>>, kElementwise},
      {"BitwiseOr", "i:TT", binary<plain<BinaryOp::kBitOr>>, kElementwise},
      {"BitwiseXor", "i:TT", binary<plain<BinaryOp::kBitXor>>, kElementwise},
      {"Div", "n:TT", binary<divide>, kElementwise, 6},
      {"Equal", "a:TT", binary<plain<BinaryOp::kEq>>, kElementwise, 6},
      {"Greater", "n:TT", binary<plain<BinaryOp::kGt>>, kElementwise, 6},
      {"GreaterOrEqual", "n:TT", binary<plain<BinaryOp::kGe>>, kElementwise},
      {"Less", "n:TT", binary<plain<BinaryOp::kLt>>, kElementwise, 6},
      {"LessOrEqual", "n:TT", binary<plain<BinaryOp::kLe>>, kElementwise},
      {"Max", "n:T*", variadic<BinaryOp::kMax>, kElementwise | kMayReturnInput},
      {"Mean", "f:T*", variadic<BinaryOp::kAdd>, kElementwise | kMayReturnInput},
      {"Min", "n:T*", variadic<BinaryOp::kMin>, kElementwise | kMayReturnInput},
      {"Mod", "n:TT", binary<mod>, kElementwise},
      {"Mul", "n:TT", binary<arithmetic<BinaryOp::kMul>>, kElementwise, 6},
      {"Or", "b:TT", binary<plain<BinaryOp::kOr>>, kElementwise, 6},
      {"PRelu", "n:TT", binary<prelu>, 0, 6},
      {"Pow", "n:TN", binary<pow>, kElementwise, 6},
      {"Sub", "n:TT", binary<arithmetic<BinaryOp::kSub>>, kElementwise, 6},
      {"SwiGLU", "f:TT", binary<swiglu>, kElementwise},
      {"Sum", "f:T*", variadic<BinaryOp::kAdd>, kElementwise | kMayReturnInput},
      {"Where", "a:BTT", emit_where, kElementwise},
      {"Xor", "b:TT", binary<exclusive_or>, kElementwise, 6},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
