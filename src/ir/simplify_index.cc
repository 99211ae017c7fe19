// Simplification of kI64 expressions, which are index arithmetic and assumed not to overflow.
#include <optional>
#include <utility>

#include "ir/affine.h"
#include "ir/affine_visitor.h"
#include "ir/linear.h"
#include "ir/simplifier.h"
#include "ir/structural.h"

namespace tensorsmith::ir {

namespace {

LinearSum constant_sum(int64_t value) {
  LinearSum out;
  out.constant = value;
  return out;
}

// Returns the sum of a simplified expression that is usually an atom; the builders may have folded
// it into something else.
LinearSum atom_sum(const Expr& e) {
  LinearSum out = linearize(e);
  if (out.bad) {
    out = {};
    out.terms.push_back({e, 1});
  }
  return out;
}

LinearSum scaled(const LinearSum& a, int64_t factor) {
  LinearSum out;
  out.add(a, factor);
  return out;
}

// Returns the sum as an expression, with its terms in canonical order.
Expr ordered_expr(LinearSum sum) {
  sort_terms(sum);
  return to_expr(sum);
}

// Returns the node op(x, constant > 0), or null.
const Binary* by_constant(const Expr& e, BinaryOp op) {
  const Binary* n = as<Binary>(e);
  if (n == nullptr || n->op != op) return nullptr;
  const IntImm* imm = as<IntImm>(n->b);
  return imm != nullptr && imm->value > 0 ? n : nullptr;
}
int64_t divisor_of(const Binary* n) { return as<IntImm>(n->b)->value; }

}  // namespace

// Sums over expressions, with terms in the order of appearance; a sum that overflows int64 is
// marked bad.
class Simplifier::Rules : public AffineRules<Rules, LinearSum> {
 public:
  explicit Rules(Simplifier& simplifier) : simplifier_(simplifier) {}
  static constexpr bool kRecombinesRests = true;
  static constexpr bool kFindsRemainders = true;

  static LinearSum start(int64_t constant) { return constant_sum(constant); }
  static void push(LinearSum& a, const Expr& atom, int64_t coefficient) {
    a.terms.push_back({atom, coefficient});
  }
  static size_t count(const LinearSum& a) { return a.terms.size(); }
  static const LinearSum::Term& term(const LinearSum& a, size_t i) { return a.terms[i]; }
  static bool same(const Expr& x, const Expr& y) { return same_atom(x, y); }
  static bool equal(const LinearSum& a, const LinearSum& b) {
    return !a.bad && !b.bad && structural_equal(ordered_expr(a), ordered_expr(b));
  }
  static LinearSum merge(const LinearSum& a, const LinearSum& b, int64_t factor) {
    LinearSum out = a;
    out.add(b, factor);
    return out;
  }
  static LinearSum scale(const LinearSum& a, int64_t factor) { return scaled(a, factor); }
  static LinearSum plus(LinearSum a, int64_t value, int64_t factor = 1) {
    a.add_constant(value, factor);
    return a;
  }
  Interval range(const LinearSum& a) { return simplifier_.interval(a); }
  // Does not use facts.
  Interval range_of_rest(const LinearSum& a, int64_t divisor) {
    Interval range = Interval::point(floor_mod(a.constant, divisor));
    for (const LinearSum::Term& term : a.terms) {
      if (term.coefficient % divisor != 0)
        range = ir::add(range, multiply(simplifier_.atom_bounds(term.atom), term.coefficient));
    }
    return range;
  }
  static AffineDivision division(const Expr& atom) {
    if (const Binary* n = by_constant(atom, BinaryOp::kFloorDiv))
      return {AffineKind::kFloorDiv, divisor_of(n)};
    if (const Binary* n = by_constant(atom, BinaryOp::kFloorMod))
      return {AffineKind::kFloorMod, divisor_of(n)};
    return {};
  }
  static LinearSum dividend(const Expr& atom) { return linearize(as<Binary>(atom)->a); }
  static LinearSum divided(AffineKind kind, const LinearSum& rest, int64_t divisor, const Interval&) {
    const Expr x = ordered_expr(rest);
    return atom_sum(kind == AffineKind::kFloorDiv ? ir::floordiv(x, divisor) : ir::floormod(x, divisor));
  }

 private:
  Simplifier& simplifier_;
};

LinearSum Simplifier::div_const(const LinearSum& n, int64_t divisor) {
  return Rules(*this).floordiv(n, divisor);
}
LinearSum Simplifier::mod_const(const LinearSum& n, int64_t divisor) {
  return Rules(*this).floormod(n, divisor);
}
void Simplifier::recombine(LinearSum& sum) { sum = Rules(*this).recombined(std::move(sum)); }

LinearSum Simplifier::div_general(const LinearSum& a, const LinearSum& b, bool truncate) {
  if (b.is_constant()) {
    if (b.constant == 0) return constant_sum(0);
    if (b.constant != INT64_MIN) {
      // Negating both operands changes neither kind of division; truncating division is odd in each
      // operand.
      const LinearSum n = scaled(a, b.constant < 0 ? -1 : 1);
      const int64_t divisor = b.constant < 0 ? -b.constant : b.constant;
      const Interval range = interval(n);
      if (!truncate || range.min >= 0) return div_const(n, divisor);
      if (range.max <= 0) return scaled(div_const(scaled(n, -1), divisor), -1);
    }
  } else if (interval(a).min >= 0 && interval(difference(a, b)).max < 0) {
    return constant_sum(0);
  }
  return atom_sum(binary(truncate ? BinaryOp::kDiv : BinaryOp::kFloorDiv, to_expr(a), to_expr(b)));
}

LinearSum Simplifier::mod_general(const LinearSum& a, const LinearSum& b) {
  if (b.is_constant()) {
    if (b.constant == 0) return constant_sum(0);
    if (b.constant != INT64_MIN) return scaled(mod_const(scaled(a, -1), -b.constant), -1);
  } else if (interval(a).min >= 0 && interval(difference(a, b)).max < 0) {
    return a;
  }
  return atom_sum(floormod(to_expr(a), to_expr(b)));
}

LinearSum Simplifier::min_max(BinaryOp op, const LinearSum& a, const LinearSum& b) {
  const bool is_min = op == BinaryOp::kMin;
  // 1: x is always the result against y; -1: y is; 0: unknown.
  const auto winner = [&](const LinearSum& x, const LinearSum& y) {
    const Interval d = interval(difference(x, y));
    if (is_min ? d.max <= 0 : d.min >= 0) return 1;
    return (is_min ? d.min >= 0 : d.max <= 0) ? -1 : 0;
  };
  if (const int w = winner(a, b); w != 0) return w > 0 ? a : b;
  // In op(op(p, q), y), an operand p or q that never beats y is dropped.
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (x->terms.size() != 1 || x->constant != 0 || x->terms[0].coefficient != 1) continue;
    const Binary* n = as<Binary>(x->terms[0].atom);
    if (n == nullptr || n->op != op) continue;
    const LinearSum p = linearize(n->a);
    const LinearSum q = linearize(n->b);
    const int wp = winner(p, *y);
    const int wq = winner(q, *y);
    if (wp > 0 || wq > 0) return *x;
    if (wp < 0) return min_max(op, q, *y);
    if (wq < 0) return min_max(op, p, *y);
  }
  if (a.is_constant()) return atom_sum(binary(op, to_expr(b), to_expr(a)));
  return atom_sum(binary(op, to_expr(a), to_expr(b)));
}

// Returns the sum of a op b for operators and operands for which AffineVisitor has no rule.
LinearSum Simplifier::linear_general(BinaryOp op, const LinearSum& a, const LinearSum& b) {
  const auto kept = [&] { return atom_sum(ir::binary(op, to_expr(a), to_expr(b))); };
  const bool shifts = b.is_constant() && b.constant >= 0 && b.constant < 62;
  switch (op) {
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
      return div_general(a, b, op == BinaryOp::kDiv);
    case BinaryOp::kFloorMod:
      return mod_general(a, b);
    case BinaryOp::kShl:
      return shifts ? scaled(a, int64_t{1} << b.constant) : kept();
    case BinaryOp::kShr:
      return shifts ? div_const(a, int64_t{1} << b.constant) : kept();
    case BinaryOp::kBitAnd:
      // x & (2^k - 1) => x % 2^k
      if (b.is_constant() && b.constant > 0 && b.constant < INT64_MAX && ((b.constant + 1) & b.constant) == 0)
        return mod_const(a, b.constant + 1);
      return kept();
    case BinaryOp::kMul:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
      return kept();
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "a condition among index expressions");
}

class Simplifier::Reader : public AffineVisitor<Reader, LinearSum> {
 public:
  explicit Reader(Simplifier& simplifier) : simplifier_(simplifier) {}

  Rules algebra() { return Rules(simplifier_); }
  LinearSum operand(const Expr& e) { return simplifier_.linear(e); }
  static LinearSum literal(int64_t value, const Expr&) { return constant_sum(value); }
  LinearSum variable(const VarRef& n, const Expr& e) {
    const Interval r = simplifier_.range(n.var);
    return r.min == r.max ? constant_sum(r.min) : atom_sum(e);
  }
  static std::optional<int64_t> constant_of(const LinearSum& a) {
    return a.is_constant() ? std::optional(a.constant) : std::nullopt;
  }
  bool never_negative(const LinearSum& a) { return simplifier_.interval(a).min >= 0; }
  // -x, and ~x = -1 - x
  LinearSum unary(const Unary& n, const Expr& e) {
    LinearSum out = scaled(operand(n.a), -1);
    if (n.op == UnaryOp::kBitNot) out.add_constant(-1);
    return out.bad ? atom_sum(e) : out;
  }
  LinearSum binary(const Binary& n, const Expr& e) {
    const LinearSum a = operand(n.a);
    const LinearSum b = operand(n.b);
    std::optional<LinearSum> sum = apply(n.op, a, b, e);
    if (!sum) sum = simplifier_.linear_general(n.op, a, b);
    if (!sum->bad) return *std::move(sum);
    // A coefficient overflowed int64: the operator is kept as it is.
    const Expr kept_a = to_expr(a);
    const Expr kept_b = to_expr(b);
    if (kept_a.same_as(n.a) && kept_b.same_as(n.b)) return atom_sum(e);
    return atom_sum(ir::binary(n.op, kept_a, kept_b));
  }
  LinearSum extremum(BinaryOp op, const LinearSum& a, const LinearSum& b, const Expr&) {
    return simplifier_.min_max(op, a, b);
  }
  // A select or a cast may become any other simplified expression.
  LinearSum other(const Expr& e) { return atom_sum(simplifier_.simplify_node(e)); }

 private:
  Simplifier& simplifier_;
};

void Simplifier::collect(const Expr& e, int64_t scale, LinearSum& out) {
  if (out.bad) return;
  if (const IntImm* imm = as<IntImm>(e)) return out.add_constant(imm->value, scale);
  if (const Binary* n = as<Binary>(e); n != nullptr && (n->op == BinaryOp::kAdd || n->op == BinaryOp::kSub)) {
    collect(n->a, scale, out);
    if (n->op == BinaryOp::kSub && __builtin_mul_overflow(scale, int64_t{-1}, &scale)) out.bad = true;
    return collect(n->b, scale, out);
  }
  out.add(Reader(*this).evaluate(e), scale);
}

// The result is never bad.
LinearSum Simplifier::linear(const Expr& e) {
  LinearSum out;
  collect(e, 1, out);
  recombine(out);
  if (out.bad) {
    const Binary* n = as<Binary>(e);
    return n != nullptr ? atom_sum(binary(n->op, simplify(n->a), simplify(n->b))) : atom_sum(e);
  }
  sort_terms(out);
  return out;
}

}  // namespace tensorsmith::ir
