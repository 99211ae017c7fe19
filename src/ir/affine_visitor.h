// The traversal that turns index expressions into affine sums, for all representations of sums.
#pragma once

#include <optional>
#include <utility>

#include "ir/expr.h"

namespace tensorsmith::ir {

// Evaluates an expression in an algebra of sums (ir/affine.h). Self defines
//   algebra(): returns an object with add(a, b, factor) = a + factor * b, scale, floordiv, floormod, minimum
//     and maximum;
//   operand(e): returns the sum of an operand, which is evaluate(e) or a remembered result of it;
//   literal(value, e), variable(ref, e): return the sums of these leaves;
//   constant_of(sum): returns the value of a sum without terms, or nothing;
//   never_negative(sum): returns whether truncating division of the sum is floor division;
//   other(e): returns the sum of an expression that no rule takes apart.
// The members below are the rules, and Self may redefine them.
template <class Self, class Sum>
class AffineVisitor {
 public:
  Sum evaluate(const Expr& e) {
    return visit(overloaded{
                     [&](const IntImm& n) -> Sum { return self().literal(n.value, e); },
                     [&](const FloatImm&) -> Sum { return self().other(e); },
                     [&](const VarRef& n) -> Sum { return self().variable(n, e); },
                     [&](const Unary& n) -> Sum { return self().unary(n, e); },
                     [&](const Binary& n) -> Sum { return self().binary(n, e); },
                     [&](const Select& n) -> Sum { return self().select(n, e); },
                     [&](const Cast& n) -> Sum { return self().cast(n, e); },
                     [&](const Call&) -> Sum { return self().other(e); },
                     [&](const Load&) -> Sum { return self().other(e); },
                 },
                 e);
  }

  // Returns whether the left operand is evaluated before the right one. Algebras number their atoms and emit
  // code in the order in which operands are evaluated.
  static bool left_first(BinaryOp) { return false; }

  Sum unary(const Unary& n, const Expr& e) {
    return n.op == UnaryOp::kNeg ? self().algebra().scale(self().operand(n.a), -1) : self().other(e);
  }
  Sum binary(const Binary& n, const Expr& e) {
    if (n.op > BinaryOp::kMax) return self().other(e);  // apply() has no rules for these
    Sum a, b;
    if (self().left_first(n.op)) a = self().operand(n.a);
    b = self().operand(n.b);
    if (!self().left_first(n.op)) a = self().operand(n.a);
    std::optional<Sum> sum = self().apply(n.op, a, b, e);
    return sum ? *std::move(sum) : self().other(e);
  }
  Sum select(const Select&, const Expr& e) { return self().other(e); }
  Sum cast(const Cast&, const Expr& e) { return self().other(e); }

  // Return the sum as a constant by which others can be multiplied or divided, or nothing.
  std::optional<int64_t> factor(const Sum& sum) { return self().constant_of(sum); }
  std::optional<int64_t> divisor(const Sum& sum) {
    const auto value = self().constant_of(sum);
    return value && *value > 0 ? value : std::nullopt;
  }

  Sum extremum(BinaryOp op, const Sum& a, const Sum& b, const Expr&) {
    return op == BinaryOp::kMin ? self().algebra().minimum(a, b) : self().algebra().maximum(a, b);
  }

  // Returns the sum e = a op b, or nothing if no rule gives it.
  std::optional<Sum> apply(BinaryOp op, const Sum& a, const Sum& b, const Expr& e) {
    switch (op) {
      case BinaryOp::kAdd:
        return self().algebra().add(a, b, 1);
      case BinaryOp::kSub:
        return self().algebra().add(a, b, -1);
      case BinaryOp::kMul:
        if (const auto c = self().factor(b)) return self().algebra().scale(a, *c);
        if (const auto c = self().factor(a)) return self().algebra().scale(b, *c);
        break;
      case BinaryOp::kDiv:
        if (const auto c = self().divisor(b); c && self().never_negative(a))
          return self().algebra().floordiv(a, *c);
        break;
      case BinaryOp::kFloorDiv:
        if (const auto c = self().divisor(b)) return self().algebra().floordiv(a, *c);
        break;
      case BinaryOp::kFloorMod:
        if (const auto c = self().divisor(b)) return self().algebra().floormod(a, *c);
        break;
      case BinaryOp::kMin:
      case BinaryOp::kMax:
        return self().extremum(op, a, b, e);
      case BinaryOp::kEq:
      case BinaryOp::kNe:
      case BinaryOp::kLt:
      case BinaryOp::kLe:
      case BinaryOp::kGt:
      case BinaryOp::kGe:
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
      case BinaryOp::kBitAnd:
      case BinaryOp::kBitOr:
      case BinaryOp::kBitXor:
      case BinaryOp::kShl:
      case BinaryOp::kShr:
        break;
    }
    return std::nullopt;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace tensorsmith::ir
