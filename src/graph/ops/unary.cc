// Elementwise operators of one tensor: activations, rounding, casts.
#include <cmath>
#include <numbers>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;
using ir::Intrinsic;

Expr like(const Expr& x, double value) { return ir::make_const(x.dtype(), value); }
Expr one(Intrinsic intrinsic, const Expr& x) { return ir::call(intrinsic, {x}); }
// 0 > x ? 0 : x, which propagates NaN.
Expr positive_part(const Expr& x) { return ir::max(like(x, 0), x); }
Expr sigmoid(const Expr& x) { return like(x, 1) / (like(x, 1) + one(Intrinsic::kExp, -x)); }
// log(1 + exp(x)) without overflow.
Expr softplus(const Expr& x) {
  return positive_part(x) + one(Intrinsic::kLog, like(x, 1) + one(Intrinsic::kExp, -one(Intrinsic::kAbs, x)));
}
Expr hard_sigmoid(const Expr& x, double alpha, double beta) {
  return ir::min(like(x, 1), ir::max(like(x, 0), x * like(x, alpha) + like(x, beta)));
}

template <Expr (*F)(OpContext&, const Expr&)>
Result<Buffers> unary(OpContext& ctx) {
  std::string name = ctx.node().op;
  for (char& c : name) c = std::tolower(static_cast<unsigned char>(c));
  return Buffers{map_elements(ctx, name, ctx.in(0), [&ctx](const Expr& x) { return F(ctx, x); })};
}

template <Intrinsic I>
Expr intrinsic(OpContext&, const Expr& x) {
  return one(I, x);
}

Expr absolute(OpContext&, const Expr& x) {
  if (ir::is_float(x.dtype())) return one(Intrinsic::kAbs, x);
  if (!ir::is_signed_int(x.dtype())) return x;
  return ir::select(x < like(x, 0), negated(x), x);
}
Expr sign(OpContext&, const Expr& x) {
  if (ir::is_float(x.dtype())) return one(Intrinsic::kSign, x);
  const Expr positive = ir::select(x > like(x, 0), like(x, 1), like(x, 0));
  if (!ir::is_signed_int(x.dtype())) return positive;
  return ir::select(x < like(x, 0), like(x, -1), positive);
}
Expr negate(OpContext&, const Expr& x) { return negated(x); }
Expr reciprocal(OpContext&, const Expr& x) { return like(x, 1) / x; }
Expr logical_not(OpContext&, const Expr& x) { return !x; }
Expr bitwise_not(OpContext&, const Expr& x) { return ir::unary(ir::UnaryOp::kBitNot, x); }
Expr relu(OpContext&, const Expr& x) { return positive_part(x); }
Expr sigmoid_of(OpContext&, const Expr& x) { return sigmoid(x); }
Expr softplus_of(OpContext&, const Expr& x) { return softplus(x); }
Expr softsign(OpContext&, const Expr& x) { return x / (like(x, 1) + one(Intrinsic::kAbs, x)); }
Expr mish(OpContext&, const Expr& x) { return x * one(Intrinsic::kTanh, softplus(x)); }
Expr leaky_relu(OpContext& ctx, const Expr& x) {
  return ir::select(x < like(x, 0), x * like(x, ctx.float_attr("alpha", 0.01)), x);
}
Expr elu(OpContext& ctx, const Expr& x) {
  const Expr alpha = like(x, ctx.float_attr("alpha", 1.0));
  return ir::select(x < like(x, 0), alpha * (one(Intrinsic::kExp, x) - like(x, 1)), x);
}
Expr selu(OpContext& ctx, const Expr& x) {
  const Expr alpha = like(x, ctx.float_attr("alpha", 1.67326319217681884765625));
  const Expr gamma = like(x, ctx.float_attr("gamma", 1.05070102214813232421875));
  return gamma * ir::select(x > like(x, 0), x, alpha * one(Intrinsic::kExp, x) - alpha);
}
Expr celu(OpContext& ctx, const Expr& x) {
  const Expr alpha = like(x, ctx.float_attr("alpha", 1.0));
  return positive_part(x) + ir::min(like(x, 0), alpha * (one(Intrinsic::kExp, x / alpha) - like(x, 1)));
}
Expr hard_sigmoid_of(OpContext& ctx, const Expr& x) {
  return hard_sigmoid(x, ctx.float_attr("alpha", 0.2), ctx.float_attr("beta", 0.5));
}
Expr hard_swish(OpContext&, const Expr& x) { return x * hard_sigmoid(x, 1.0 / 6.0, 0.5); }
Expr swish(OpContext& ctx, const Expr& x) { return x * sigmoid(x * like(x, ctx.float_attr("alpha", 1.0))); }
Expr thresholded_relu(OpContext& ctx, const Expr& x) {
  return ir::select(x > like(x, ctx.float_attr("alpha", 1.0)), x, like(x, 0));
}
Expr shrink(OpContext& ctx, const Expr& x) {
  const double lambda = ctx.float_attr("lambd", 0.5);
  const Expr bias = like(x, ctx.float_attr("bias", 0.0));
  return ir::select(x < like(x, -lambda), wrapping(ir::BinaryOp::kAdd, x, bias),
                    ir::select(x > like(x, lambda), wrapping(ir::BinaryOp::kSub, x, bias), like(x, 0)));
}
// 0.5 x (1 + erf(x / sqrt 2)), or with approximate = "tanh"
// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Expr gelu(OpContext& ctx, const Expr& x) {
  const Expr half = like(x, 0.5) * x;
  if (ctx.string_attr("approximate", "none") == "tanh") {
    const Expr inner = like(x, std::sqrt(2.0 / std::numbers::pi)) * (x + like(x, 0.044715) * x * x * x);
    return half * (like(x, 1) + one(Intrinsic::kTanh, inner));
  }
  return half * (like(x, 1) + one(Intrinsic::kErf, x * like(x, 1.0 / std::numbers::sqrt2)));
}
Expr is_nan(OpContext&, const Expr& x) { return one(Intrinsic::kIsNan, x); }
Expr is_inf(OpContext& ctx, const Expr& x) {
  const bool positive = ctx.int_attr("detect_positive", 1) != 0;
  const bool negative = ctx.int_attr("detect_negative", 1) != 0;
  if (positive && negative) return one(Intrinsic::kIsInf, x);
  if (!positive && !negative) return ir::bool_imm(false);
  return one(Intrinsic::kIsInf, x) && (positive ? x > like(x, 0) : x < like(x, 0));
}

Result<Buffers> emit_cast(OpContext& ctx) {
  if (!ctx.has_attr("to")) return ctx.invalid("attribute to is missing");
  const int64_t to = ctx.int_attr("to", 0);
  const auto dtype = onnx_dtype(to);
  if (!dtype) return ctx.unsupported("cast to " + onnx_type_name(to));
  // The importer's attribute `bits` marks integers of 4 or 2 bits, which are held in bytes. Floats are rounded, halves away
  // from zero, as ONNX Runtime does; numbers out of range wrap around.
  if (const int64_t bits = ctx.int_attr("bits", 0); bits != 0) {
    const ir::DType i32 = ir::DType::kI32;
    const Expr half = ir::int_imm(i32, ir::is_signed_int(*dtype) ? int64_t{1} << (bits - 1) : 0);
    const Expr mask = ir::int_imm(i32, (int64_t{1} << bits) - 1);
    return Buffers{map_elements(ctx, "cast", ctx.in(0), [&](const Expr& x) {
      Expr whole = x;
      if (ir::is_float(x.dtype())) {
        const Expr shift = like(x, 0.5);
        whole =
            ir::select(x < like(x, 0), one(Intrinsic::kCeil, x - shift), one(Intrinsic::kFloor, x + shift));
      }
      const Expr low = ir::binary(ir::BinaryOp::kBitAnd, ir::cast(i32, whole) + half, mask) - half;
      return ir::cast(*dtype, low);
    })};
  }
  if (*dtype == ctx.dtype(0)) return Buffers{ctx.in(0)};
  return Buffers{map_elements(ctx, "cast", ctx.in(0), [&](const Expr& x) { return ir::cast(*dtype, x); })};
}

Result<Buffers> emit_cast_like(OpContext& ctx) {
  const ir::DType dtype = ctx.dtype(1);
  if (dtype == ctx.dtype(0)) return Buffers{ctx.in(0)};
  return Buffers{map_elements(ctx, "cast", ctx.in(0), [&](const Expr& x) { return ir::cast(dtype, x); })};
}

Result<Buffers> emit_identity(OpContext& ctx) { return Buffers{ctx.in(0)}; }

// Inference only: the output is the input, and the mask is true everywhere.
Result<Buffers> emit_dropout(OpContext& ctx) {
  if (ctx.has(2)) {
    const lower::Tensor* training = ctx.constant(2);
    if (training == nullptr || training->num_elements() != 1) {
      return ctx.unsupported("input 2 (training_mode) must be constant; it is only known at run time");
    }
    const lower::Tensor* ratio = ctx.has(1) ? ctx.constant(1) : nullptr;
    const bool drops_nothing = ratio != nullptr && ratio->num_elements() == 1 && ratio->at(0).f == 0.0;
    if (training->at(0).i != 0 && ctx.has(1) && ratio == nullptr)
      return ctx.unsupported(
          "input 1 (ratio) must be constant in training mode; it is only known at run time");
    if (training->at(0).i != 0 && !drops_nothing) {
      return ctx.unsupported("training mode; export the model for inference");
    }
  }
  Buffers out = {ctx.in(0)};
  if (ctx.wants_output(1)) {
    out.push_back(ctx.compute("mask", axes_for(ctx.shape(0)),
                              ctx.opset() >= 10 ? ir::bool_imm(true) : ir::make_const(ctx.dtype(0), 1)));
  }
  return out;
}

// Opset < 11: bounds are attributes; later: inputs, each optional.
Result<Buffers> emit_clip(OpContext& ctx) {
  for (size_t i = 1; i < 3; ++i) {
    if (ctx.has(i) && product(ctx.shape(i)) != 1) {
      return ctx.invalid("input " + std::to_string(i) + " must be a scalar, not " +
                         describe(ctx.dtype(i), ctx.shape(i)));
    }
  }
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(axes);
  const auto bound = [&](size_t i) {
    const lower::Tensor* constant = ctx.constant(i);
    if (constant != nullptr) return scalar_imm(ctx.dtype(i), constant->at(0));
    return ir::load(ctx.in(i), Exprs(ctx.rank(i), Expr(0)));
  };
  Expr x = ir::load(ctx.in(0), vars);
  if (ctx.opset() < 11) {
    if (ctx.has_attr("min")) x = ir::max(like(x, ctx.float_attr("min", 0)), x);
    if (ctx.has_attr("max")) x = ir::min(like(x, ctx.float_attr("max", 0)), x);
  } else {
    if (ctx.has(1)) x = ir::max(bound(1), x);
    if (ctx.has(2)) x = ir::min(bound(2), x);
  }
  return Buffers{ctx.compute("clip", std::move(axes), std::move(x))};
}

}  // namespace

std::span<const OpEntry> unary_operators() {
  static const OpEntry kEntries[] = {
      {"Abs", "n:T", unary<absolute>, kElementwise},
      {"Acos", "f:T", unary<intrinsic<Intrinsic::kAcos>>, kElementwise},
      {"Acosh", "f:T", unary<intrinsic<Intrinsic::kAcosh>>, kElementwise},
      {"Asin", "f:T", unary<intrinsic<Intrinsic::kAsin>>, kElementwise},
      {"Asinh", "f:T", unary<intrinsic<Intrinsic::kAsinh>>, kElementwise},
      {"Atan", "f:T", unary<intrinsic<Intrinsic::kAtan>>, kElementwise},
      {"Atanh", "f:T", unary<intrinsic<Intrinsic::kAtanh>>, kElementwise},
      {"BitwiseNot", "i:T", unary<bitwise_not>, kElementwise},
      {"Cast", "a:T", emit_cast, kElementwise | kMayReturnInput, 6},
      {"CastLike", "a:TA", emit_cast_like, kElementwise | kMayReturnInput},
      {"Ceil", "f:T", unary<intrinsic<Intrinsic::kCeil>>, kElementwise},
      {"Celu", "f:T", unary<celu>, kElementwise},
      {"Clip", "n:Ttt", emit_clip, kElementwise | kPicksElements},
      {"Cos", "f:T", unary<intrinsic<Intrinsic::kCos>>, kElementwise},
      {"Cosh", "f:T", unary<intrinsic<Intrinsic::kCosh>>, kElementwise},
      {"Dropout", "a:Tfb", emit_dropout, kPicksElements | kReturnsInput, 6},
      {"Elu", "f:T", unary<elu>, kElementwise},
      {"Erf", "f:T", unary<intrinsic<Intrinsic::kErf>>, kElementwise},
      {"Exp", "f:T", unary<intrinsic<Intrinsic::kExp>>, kElementwise},
      {"Floor", "f:T", unary<intrinsic<Intrinsic::kFloor>>, kElementwise},
      {"Gelu", "f:T", unary<gelu>, kElementwise},
      {"HardSigmoid", "f:T", unary<hard_sigmoid_of>, kElementwise},
      {"HardSwish", "f:T", unary<hard_swish>, kElementwise},
      {"Identity", "a:T", emit_identity, kElementwise | kMovesElements | kReturnsInput},
      {"IsInf", "f:T", unary<is_inf>, kElementwise},
      {"IsNaN", "f:T", unary<is_nan>, kElementwise},
      {"LeakyRelu", "f:T", unary<leaky_relu>, kElementwise},
      {"Log", "f:T", unary<intrinsic<Intrinsic::kLog>>, kElementwise},
      {"Mish", "f:T", unary<mish>, kElementwise},
      {"Neg", "n:T", unary<negate>, kElementwise},
      {"Not", "b:T", unary<logical_not>, kElementwise},
      {"Reciprocal", "f:T", unary<reciprocal>, kElementwise},
      {"Relu", "n:T", unary<relu>, kElementwise | kPicksElements},
      {"Round", "f:T", unary<intrinsic<Intrinsic::kRound>>, kElementwise},
      {"Selu", "f:T", unary<selu>, kElementwise},
      {"Shrink", "n:T", unary<shrink>, kElementwise},
      {"Sigmoid", "f:T", unary<sigmoid_of>, kElementwise},
      {"Sign", "n:T", unary<sign>, kElementwise},
      {"Sin", "f:T", unary<intrinsic<Intrinsic::kSin>>, kElementwise},
      {"Sinh", "f:T", unary<intrinsic<Intrinsic::kSinh>>, kElementwise},
      {"Softplus", "f:T", unary<softplus_of>, kElementwise},
      {"Softsign", "f:T", unary<softsign>, kElementwise},
      {"Sqrt", "f:T", unary<intrinsic<Intrinsic::kSqrt>>, kElementwise},
      {"Swish", "f:T", unary<swish>, kElementwise},
      {"Tan", "f:T", unary<intrinsic<Intrinsic::kTan>>, kElementwise},
      {"Tanh", "f:T", unary<intrinsic<Intrinsic::kTanh>>, kElementwise},
      {"ThresholdedRelu", "f:T", unary<thresholded_relu>, kElementwise},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
