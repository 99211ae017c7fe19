#include "support/random_expr.h"

#include <limits>
#include <utility>

namespace tensorsmith::test {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

bool leaves_int64(BinaryOp op, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (op) {
    case BinaryOp::kAdd:
      return __builtin_add_overflow(a, b, &out);
    case BinaryOp::kSub:
      return __builtin_sub_overflow(a, b, &out);
    case BinaryOp::kMul:
      return __builtin_mul_overflow(a, b, &out);
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
      return a == INT64_MIN && b == -1;
    case BinaryOp::kShl:
      return b > 0 && (b >= 63 || a > (INT64_MAX >> b) || a < (INT64_MIN >> b));
    default:
      return false;
  }
}

}  // namespace

Scalar evaluate_expr(const Expr& e, const Assignment& values, bool* overflow) {
  const auto eval = [&](const Expr& x) { return evaluate_expr(x, values, overflow); };
  return visit(overloaded{
                   [&](const IntImm& n) { return Scalar{e.dtype(), n.value, 0}; },
                   [&](const FloatImm& n) { return Scalar{e.dtype(), 0, n.value}; },
                   [&](const VarRef& n) { return Scalar{e.dtype(), values.at(n.var.get()), 0}; },
                   [&](const Unary& n) { return eval_unary(n.op, eval(n.a)); },
                   [&](const Binary& n) {
                     const Scalar a = eval(n.a);
                     const Scalar b = eval(n.b);
                     if (a.dtype == DType::kI64 && overflow != nullptr && leaves_int64(n.op, a.i, b.i))
                       *overflow = true;
                     return eval_binary(n.op, a, b);
                   },
                   [&](const Select& n) { return eval(eval(n.condition).i != 0 ? n.a : n.b); },
                   [&](const Cast& n) { return eval_cast(e.dtype(), eval(n.a)); },
                   [&](const Call& n) {
                     return eval_call(n.intrinsic, eval(n.args[0]),
                                      n.args.size() > 1 ? eval(n.args[1]) : Scalar{});
                   },
                   [&](const Load&) -> Scalar {
                     throw_internal_error(__FILE__, __LINE__, "evaluate_expr: a load has no value");
                   },
               },
               e);
}

ExprGenerator::ExprGenerator(uint64_t seed, int count) : rng(seed) {
  static constexpr int64_t kExtents[] = {1, 2, 3, 4, 7, 8, 16, 56};
  for (int i = 0; i < count; ++i) {
    vars.emplace_back("v" + std::to_string(i));
    const int64_t low = rng.bernoulli(0.2) ? rng.uniform_int(-8, 8) : 0;
    bounds[vars.back().get()] = {low, low + kExtents[rng.below(std::size(kExtents))] - 1};
  }
}

Expr ExprGenerator::index(int depth) {
  static constexpr int64_t kFactors[] = {1, 2, 3, 4, 4, 5, 8, 16, 16, 32, 64, 128, -1, -4, 0, 7};
  const auto factor = [&] { return Expr(kFactors[rng.below(std::size(kFactors))]); };
  if (depth <= 0) {
    if (rng.bernoulli(0.75)) return vars[rng.below(vars.size())];
    return {rng.uniform_int(-20, 70)};
  }
  switch (rng.below(22)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return index(depth - 1) + index(depth - 1);
    case 6:
    case 7:
      return index(depth - 1) - index(depth - 1);
    case 8:
    case 9:
    case 10:
      return index(depth - 1) * factor();
    case 11:
    case 12:
    case 13:
      return floordiv(index(depth - 1), factor());
    case 14:
    case 15:
    case 16:
      return floormod(index(depth - 1), factor());
    case 17:
      return min(index(depth - 1), index(depth - 1));
    case 18:
      return max(index(depth - 1), index(depth - 1));
    case 19:
      return select(condition(depth - 2), index(depth - 1), index(depth - 1));
    case 20: {
      // An index that is split and recombined.
      const Expr x = index(depth - 1);
      const int64_t c = rng.uniform_int(1, 9);
      return rng.bernoulli(0.5) ? floordiv(x, c) * c + floormod(x, c) : x - floordiv(x, c) * c;
    }
    default:
      break;
  }
  static constexpr BinaryOp kOthers[] = {BinaryOp::kDiv,    BinaryOp::kFloorDiv, BinaryOp::kFloorMod,
                                         BinaryOp::kMul,    BinaryOp::kBitAnd,   BinaryOp::kBitOr,
                                         BinaryOp::kBitXor, BinaryOp::kShr,      BinaryOp::kShl};
  switch (rng.below(4)) {
    case 0:
      return cast(DType::kI64, value(DType::kI32, depth - 1));
    case 1:
      return cast(DType::kI64, condition(depth - 1));
    case 2:
      return unary(rng.bernoulli(0.5) ? UnaryOp::kNeg : UnaryOp::kBitNot, index(depth - 1));
    default:
      return binary(kOthers[rng.below(std::size(kOthers))], index(depth - 1),
                    rng.bernoulli(0.5) ? Expr(rng.uniform_int(-2, 7)) : index(depth - 1));
  }
}

Expr ExprGenerator::condition(int depth) {
  static constexpr BinaryOp kCompare[] = {BinaryOp::kEq, BinaryOp::kNe, BinaryOp::kLt,
                                          BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe};
  const uint64_t kind = depth <= 0 ? 0 : rng.below(10);
  if (kind < 5) {
    return binary(kCompare[rng.below(6)], index(depth - 1),
                  rng.bernoulli(0.6) ? Expr(rng.uniform_int(-3, 64)) : index(depth - 1));
  }
  if (kind == 5) return !condition(depth - 1);
  if (kind == 6) {
    const DType t = rng.bernoulli(0.5) ? DType::kF32 : DType::kU8;
    return binary(kCompare[rng.below(6)], value(t, depth - 1), value(t, depth - 1));
  }
  if (kind == 7) return select(condition(depth - 2), condition(depth - 1), condition(depth - 1));
  return binary(rng.bernoulli(0.6) ? BinaryOp::kAnd : BinaryOp::kOr, condition(depth - 1),
                condition(depth - 1));
}

Expr ExprGenerator::value(DType dtype, int depth) {
  if (dtype == DType::kI64) return index(depth);
  if (dtype == DType::kBool) return condition(depth);
  if (depth <= 0) {
    if (rng.bernoulli(0.5)) return cast(dtype, index(0));
    if (is_float(dtype)) {
      static constexpr double kValues[] = {
          0.0, -0.0, 1.0, -1.5, 0.1, 3e30, std::numeric_limits<double>::infinity()};
      return float_imm(dtype, kValues[rng.below(std::size(kValues))]);
    }
    return int_imm(dtype, rng.uniform_int(-300, 300));
  }
  static constexpr BinaryOp kBoth[] = {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul,
                                       BinaryOp::kDiv, BinaryOp::kMin, BinaryOp::kMax};
  static constexpr BinaryOp kInts[] = {BinaryOp::kFloorDiv, BinaryOp::kFloorMod, BinaryOp::kBitAnd,
                                       BinaryOp::kBitOr,    BinaryOp::kBitXor,   BinaryOp::kShl,
                                       BinaryOp::kShr};
  static constexpr DType kTypes[] = {DType::kF32, DType::kI32, DType::kU8,
                                     DType::kI8,  DType::kF16, DType::kI64};
  switch (rng.below(8)) {
    case 0:
      return select(condition(depth - 1), value(dtype, depth - 1), value(dtype, depth - 1));
    case 1:
      return cast(dtype, value(kTypes[rng.below(std::size(kTypes))], depth - 1));
    case 2:
      return -value(dtype, depth - 1);
    case 3:
      if (is_float(dtype)) {
        static constexpr Intrinsic kCalls[] = {Intrinsic::kAbs, Intrinsic::kExp, Intrinsic::kFloor,
                                               Intrinsic::kSqrt};
        return call(kCalls[rng.below(std::size(kCalls))], {value(dtype, depth - 1)});
      }
      return binary(kInts[rng.below(std::size(kInts))], value(dtype, depth - 1), value(dtype, depth - 1));
    default:
      return binary(kBoth[rng.below(std::size(kBoth))], value(dtype, depth - 1), value(dtype, depth - 1));
  }
}

Assignment ExprGenerator::assignment() {
  Assignment out;
  for (const Var& var : vars) {
    const Interval range = bounds.at(var.get());
    out[var.get()] = rng.uniform_int(range.min, range.max);
  }
  return out;
}

}  // namespace tensorsmith::test
