// Simplification of conditions, casts and selects, and of values of any dtype except index
// arithmetic.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/floor_div.h"
#include "ir/analysis.h"
#include "ir/linear.h"
#include "ir/scalar.h"
#include "ir/simplifier.h"
#include "ir/simplify.h"
#include "ir/structural.h"

namespace tensorsmith::ir {

namespace {

std::optional<Scalar> constant_of(const Expr& e) {
  if (const IntImm* imm = as<IntImm>(e)) return Scalar{e.dtype(), imm->value, 0};
  if (const FloatImm* imm = as<FloatImm>(e)) return Scalar{e.dtype(), 0, imm->value};
  return std::nullopt;
}

Expr imm_of(const Scalar& value) {
  return is_float(value.dtype) ? float_imm(value.dtype, value.f) : int_imm(value.dtype, value.i);
}

bool is_float_value(const Expr& e, double value) {
  const FloatImm* imm = as<FloatImm>(e);
  return imm != nullptr && imm->value == value && std::signbit(imm->value) == std::signbit(value);
}

// Returns `d op 0` with the positive terms on the left, and the negative ones and the constant on
// the right.
Expr two_sided(BinaryOp op, LinearSum d) {
  sort_terms(d);
  LinearSum left;
  LinearSum right;
  for (const LinearSum::Term& term : d.terms) {
    if (term.coefficient > 0) {
      left.terms.push_back(term);
    } else {
      right.add_term(term.atom, term.coefficient);
    }
  }
  LinearSum flipped;
  flipped.add(right, -1);
  if (left.terms.empty()) {
    left.constant = d.constant;
  } else {
    flipped.add_constant(d.constant, -1);
  }
  if (flipped.bad) return binary(op, to_expr(d), 0);
  return binary(op, to_expr(left), to_expr(flipped));
}

}  // namespace

Expr Simplifier::simplify(const Expr& e) {
  if (as<IntImm>(e) != nullptr || as<FloatImm>(e) != nullptr) return e;
  if (const Expr* known = simple_.find(e)) return *known;
  Expr out = simplify_under_facts(e);
  simple_.remember(e, out);
  return out;
}

Expr Simplifier::simplify_under_facts(const Expr& e) {
  Expr out;
  if (e.dtype() == DType::kI64) {
    const LinearSum sum = linear(e);
    if (sum.terms.size() == 1 && sum.constant == 0 && sum.terms[0].coefficient == 1) {
      out = sum.terms[0].atom;
    } else {
      out = to_expr(sum);
    }
  } else {
    out = simplify_node(e);
    if (out.dtype() == DType::kBool && as<IntImm>(out) == nullptr) {
      for (const auto& [known, truth] : truths_) {
        if (structural_equal(known, out)) return bool_imm(truth);
      }
    }
  }
  return structural_equal(out, e) ? e : out;
}

Expr Simplifier::simplify_node(const Expr& e) {
  return visit(overloaded{
                   [&](const IntImm&) { return e; },
                   [&](const FloatImm&) { return e; },
                   [&](const VarRef& n) {
                     const Interval r = range(n.var);
                     return !is_float(e.dtype()) && r.min == r.max ? int_imm(e.dtype(), r.min) : e;
                   },
                   [&](const Unary& n) { return simplify_unary(e, n); },
                   [&](const Binary& n) {
                     if (n.op == BinaryOp::kAnd || n.op == BinaryOp::kOr) return simplify_logical(e, n);
                     return is_comparison(n.op) ? simplify_comparison(e, n) : simplify_binary(e, n);
                   },
                   [&](const Select& n) { return simplify_select(e, n); },
                   [&](const Cast& n) { return simplify_cast(e, n); },
                   [&](const Call& n) { return simplify_call(e, n); },
                   [&](const Load& n) { return simplify_load(e, n); },
               },
               e);
}

Expr Simplifier::simplify_unary(const Expr& e, const Unary& n) {
  Expr a = simplify(n.a);
  if (n.op == UnaryOp::kNot) return negate(a);
  if (const auto value = constant_of(a)) return imm_of(eval_unary(n.op, *value));
  if (const Unary* inner = as<Unary>(a); inner != nullptr && inner->op == n.op) return inner->a;
  return a.same_as(n.a) ? e : unary(n.op, std::move(a));
}

// Handles numbers other than kI64. Integers wrap, so only rewrites that hold modulo 2^bits are
// made; floats keep every rounding.
Expr Simplifier::simplify_binary(const Expr& e, const Binary& n) {
  Expr a = simplify(n.a);
  Expr b = simplify(n.b);
  const auto x = constant_of(a);
  const auto y = constant_of(b);
  if (x.has_value() && y.has_value()) return imm_of(eval_binary(n.op, *x, *y));
  const DType dtype = e.dtype();
  if (is_float(dtype)) {
    if (n.op == BinaryOp::kMul && is_float_value(b, 1)) return a;
    if (n.op == BinaryOp::kMul && is_float_value(a, 1)) return b;
    if (n.op == BinaryOp::kDiv && is_float_value(b, 1)) return a;
    if (n.op == BinaryOp::kSub && is_float_value(b, 0)) return a;
    if (n.op == BinaryOp::kAdd && is_float_value(b, -0.0)) return a;
    if (n.op == BinaryOp::kAdd && is_float_value(a, -0.0)) return b;
  } else {
    if (n.op == BinaryOp::kMul && (is_int_value(a, 0) || is_int_value(b, 0))) return int_imm(dtype, 0);
    if (n.op == BinaryOp::kSub && structural_equal(a, b)) return int_imm(dtype, 0);
    if (x.has_value() && (n.op == BinaryOp::kAdd || n.op == BinaryOp::kMul)) std::swap(a, b);
    // (x + c) + d => x + (c + d)
    if (const Binary* inner = as<Binary>(a); inner != nullptr && inner->op == n.op &&
                                             (n.op == BinaryOp::kAdd || n.op == BinaryOp::kMul) &&
                                             as<IntImm>(b) != nullptr && as<IntImm>(inner->b) != nullptr)
      return simplify(binary(n.op, inner->a, binary(n.op, inner->b, b)));
    if (n.op == BinaryOp::kFloorDiv || n.op == BinaryOp::kFloorMod || n.op == BinaryOp::kMin ||
        n.op == BinaryOp::kMax) {
      const Interval ra = atom_bounds(a);
      const Interval rb = atom_bounds(b);
      if (dtype != DType::kU64) {
        if (n.op == BinaryOp::kMin && ra.max <= rb.min) return a;
        if (n.op == BinaryOp::kMin && rb.max <= ra.min) return b;
        if (n.op == BinaryOp::kMax && ra.min >= rb.max) return a;
        if (n.op == BinaryOp::kMax && rb.min >= ra.max) return b;
        if (n.op == BinaryOp::kFloorDiv && ra.min >= 0 && ra.max < rb.min) return int_imm(dtype, 0);
        if (n.op == BinaryOp::kFloorMod && ra.min >= 0 && ra.max < rb.min) return a;
      }
    }
  }
  if ((n.op == BinaryOp::kMin || n.op == BinaryOp::kMax) && structural_equal(a, b)) return a;
  return a.same_as(n.a) && b.same_as(n.b) ? e : binary(n.op, std::move(a), std::move(b));
}

// Returns d < 0 in canonical form: common factors are divided out, terms that cannot affect the
// result are dropped, positive terms are on the left, and negative ones and the constant on the
// right.
Expr Simplifier::less_than_zero(LinearSum d) {
  while (true) {
    const Interval range = interval(d);
    if (range.max < 0) return bool_imm(true);
    if (range.min >= 0) return bool_imm(false);
    if (d.terms.size() == 1) {
      // x // c < k <=> x < k * c
      const LinearSum::Term& term = d.terms[0];
      const Binary* n = as<Binary>(term.atom);
      const IntImm* divisor = n != nullptr && n->op == BinaryOp::kFloorDiv ? as<IntImm>(n->b) : nullptr;
      if (divisor != nullptr && divisor->value > 0 && (term.coefficient == 1 || term.coefficient == -1)) {
        LinearSum next;
        next.add(linearize(n->a), term.coefficient);
        if (term.coefficient == 1) {
          next.add_constant(d.constant, divisor->value);
        } else {
          LinearSum limit;
          limit.constant = d.constant;
          limit.add_constant(1);
          next.add(limit, divisor->value);
          next.add_constant(-1);
        }
        if (!next.bad) {
          d = std::move(next);
          continue;
        }
      }
    }
    // g * s + r < 0 <=> s + floor(r / g) < 0, if floor(r / g) is the same for all values of r.
    bool changed = false;
    for (size_t i = 0; i <= d.terms.size() && !changed; ++i) {
      int64_t g = 0;
      if (i < d.terms.size()) {
        if (d.terms[i].coefficient == INT64_MIN) continue;
        g = std::abs(d.terms[i].coefficient);
      } else {
        for (const LinearSum::Term& term : d.terms) g = std::gcd(g, term.coefficient);
      }
      if (g <= 1) continue;
      Interval r = Interval::point(d.constant);
      for (const LinearSum::Term& term : d.terms) {
        if (term.coefficient % g != 0) r = add(r, multiply(atom_bounds(term.atom), term.coefficient));
      }
      if (!r.bounded() || floor_div(r.min, g) != floor_div(r.max, g)) continue;
      LinearSum multiple;
      for (const LinearSum::Term& term : d.terms) {
        if (term.coefficient % g == 0) multiple.terms.push_back({term.atom, term.coefficient / g});
      }
      multiple.constant = floor_div(r.min, g);
      d = std::move(multiple);
      changed = true;
    }
    if (!changed) break;
  }
  return two_sided(BinaryOp::kLt, std::move(d));
}

Expr Simplifier::equals_zero(LinearSum d, bool equal) {
  const Interval range = interval(d);
  if (range.min > 0 || range.max < 0) return bool_imm(!equal);
  if (range == Interval::point(0)) return bool_imm(equal);
  int64_t g = 0;
  for (const LinearSum::Term& term : d.terms) g = std::gcd(g, term.coefficient);
  if (g > 1) {
    if (d.constant % g != 0) return bool_imm(!equal);
    d.constant /= g;
    for (LinearSum::Term& term : d.terms) term.coefficient /= g;
  }
  sort_terms(d);
  if (d.terms.front().coefficient < 0) {
    LinearSum flipped;
    flipped.add(d, -1);
    if (!flipped.bad) d = std::move(flipped);
    sort_terms(d);
  }
  return two_sided(equal ? BinaryOp::kEq : BinaryOp::kNe, std::move(d));
}

// Returns whether a loaded element may bring the sum near the limits of 64 bits.
bool Simplifier::is_unbounded_data(const LinearSum& sum) {
  constexpr int64_t kFar = int64_t{1} << 62;
  const bool reads = std::any_of(sum.terms.begin(), sum.terms.end(), [](const LinearSum::Term& term) {
    return as<VarRef>(term.atom) == nullptr && !loads_of(term.atom).empty();
  });
  if (!reads) return false;
  const Interval range = interval(sum);
  return range.min <= -kFar || range.max >= kFar;
}

Expr Simplifier::compare_index(BinaryOp op, const Expr& a, const Expr& b) {
  const LinearSum la = linear(a);
  const LinearSum lb = linear(b);
  const bool flip = op == BinaryOp::kGt || op == BinaryOp::kGe;
  LinearSum d = flip ? difference(lb, la) : difference(la, lb);
  // a <= b is a - b - 1 < 0.
  if (op == BinaryOp::kLe || op == BinaryOp::kGe) d.add_constant(-1);
  recombine(d);
  if (d.bad) return binary(op, to_expr(la), to_expr(lb));
  const Expr decided = compare_with_zero(op, std::move(d));
  // Loaded data may be any 64-bit number, so moving terms between the sides of the comparison could
  // overflow.
  if (as<IntImm>(decided) == nullptr && (is_unbounded_data(la) || is_unbounded_data(lb)))
    return binary(op, to_expr(la), to_expr(lb));
  return decided;
}

// Compares d with 0; for the ordered comparisons, d < 0.
Expr Simplifier::compare_with_zero(BinaryOp op, LinearSum d) {
  switch (op) {
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
      return less_than_zero(std::move(d));
    case BinaryOp::kEq:
    case BinaryOp::kNe:
      return equals_zero(std::move(d), op == BinaryOp::kEq);
    default:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "not a comparison");
}

Expr Simplifier::simplify_comparison(const Expr& e, const Binary& n) {
  const DType dtype = n.a.dtype();
  if (dtype == DType::kI64) return compare_index(n.op, n.a, n.b);
  Expr a = simplify(n.a);
  Expr b = simplify(n.b);
  const auto x = constant_of(a);
  const auto y = constant_of(b);
  if (x.has_value() && y.has_value()) return imm_of(eval_binary(n.op, *x, *y));
  if (!is_float(dtype)) {
    if (structural_equal(a, b))
      return bool_imm(n.op == BinaryOp::kEq || n.op == BinaryOp::kLe || n.op == BinaryOp::kGe);
    if (dtype != DType::kU64) {
      const Interval ra = atom_bounds(a);
      const Interval rb = atom_bounds(b);
      switch (n.op) {
        case BinaryOp::kLt:
        case BinaryOp::kGe:
          if (ra.max < rb.min) return bool_imm(n.op == BinaryOp::kLt);
          if (ra.min >= rb.max) return bool_imm(n.op == BinaryOp::kGe);
          break;
        case BinaryOp::kLe:
        case BinaryOp::kGt:
          if (ra.max <= rb.min) return bool_imm(n.op == BinaryOp::kLe);
          if (ra.min > rb.max) return bool_imm(n.op == BinaryOp::kGt);
          break;
        case BinaryOp::kEq:
        case BinaryOp::kNe:
          if (ra.max < rb.min || rb.max < ra.min) return bool_imm(n.op == BinaryOp::kNe);
          break;
        default:
          break;
      }
    }
    if (dtype == DType::kBool && (n.op == BinaryOp::kEq || n.op == BinaryOp::kNe)) {
      // c == true => c; c == false => !c
      for (const auto& [constant, other] : {std::pair(a, b), std::pair(b, a)}) {
        if (const IntImm* imm = as<IntImm>(constant))
          return (imm->value != 0) == (n.op == BinaryOp::kEq) ? other : negate(other);
      }
    }
  }
  return a.same_as(n.a) && b.same_as(n.b) ? e : binary(n.op, std::move(a), std::move(b));
}

// Returns the negation of a simplified condition.
BinaryOp inverse_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kEq:
      return BinaryOp::kNe;
    case BinaryOp::kNe:
      return BinaryOp::kEq;
    case BinaryOp::kLt:
      return BinaryOp::kGe;
    case BinaryOp::kLe:
      return BinaryOp::kGt;
    case BinaryOp::kGt:
      return BinaryOp::kLe;
    case BinaryOp::kGe:
      return BinaryOp::kLt;
    default:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "not a comparison");
}

Expr Simplifier::negate(const Expr& condition) {
  if (const IntImm* imm = as<IntImm>(condition)) return bool_imm(imm->value == 0);
  if (const Unary* n = as<Unary>(condition); n != nullptr && n->op == UnaryOp::kNot) return n->a;
  if (const Binary* n = as<Binary>(condition)) {
    if (n->op == BinaryOp::kAnd) return binary(BinaryOp::kOr, negate(n->a), negate(n->b));
    if (n->op == BinaryOp::kOr) return binary(BinaryOp::kAnd, negate(n->a), negate(n->b));
    // If an operand is NaN, both x < y and x >= y are false.
    if (is_comparison(n->op) && (!is_float(n->a.dtype()) || n->op == BinaryOp::kEq || n->op == BinaryOp::kNe))
      return simplify(binary(inverse_of(n->op), n->a, n->b));
  }
  return !condition;
}

Expr Simplifier::simplify_logical(const Expr& e, const Binary& n) {
  const bool is_and = n.op == BinaryOp::kAnd;
  Expr a = simplify(n.a);
  if (const IntImm* imm = as<IntImm>(a)) return (imm->value != 0) == is_and ? simplify(n.b) : a;
  // The value of b matters only if a does not decide the result.
  const Mark before = mark();
  assume(a, is_and);
  Expr b = simplify(n.b);
  rollback(before);
  return a.same_as(n.a) && b.same_as(n.b) ? e : binary(n.op, std::move(a), std::move(b));
}

Expr Simplifier::simplify_select(const Expr& e, const Select& n) {
  Expr c = simplify(n.condition);
  if (const IntImm* imm = as<IntImm>(c)) return simplify(imm->value != 0 ? n.a : n.b);
  const Mark before = mark();
  assume(c, true);
  Expr a = simplify(n.a);
  rollback(before);
  assume(c, false);
  Expr b = simplify(n.b);
  rollback(before);
  if (structural_equal(a, b)) return a;
  if (e.dtype() == DType::kBool && as<IntImm>(a) != nullptr && as<IntImm>(b) != nullptr)
    return is_int_value(a, 1) ? c : negate(c);
  if (const Unary* inner = as<Unary>(c); inner != nullptr && inner->op == UnaryOp::kNot)
    return select(inner->a, std::move(b), std::move(a));
  if (c.same_as(n.condition) && a.same_as(n.a) && b.same_as(n.b)) return e;
  return select(std::move(c), std::move(a), std::move(b));
}

Expr Simplifier::simplify_cast(const Expr& e, const Cast& n) {
  const DType to = e.dtype();
  Expr a = simplify(n.a);
  if (a.dtype() == to && !is_float_product(a)) return a;
  if (const auto value = constant_of(a)) return imm_of(eval_cast(to, *value));
  // A value that fits the intermediate dtype is unchanged by the conversions.
  if (const Cast* inner = as<Cast>(a); inner != nullptr && inner->a.dtype() == to && !is_float(to)) {
    const DType middle = a.dtype();
    if (to == DType::kBool && middle != DType::kBool) return inner->a;
    if (!is_float(middle) && middle != DType::kU64 && to != DType::kU64) {
      const Interval r = to == DType::kI64 ? interval(linearize(inner->a)) : atom_bounds(inner->a);
      if (middle == DType::kI64 || within(r, range_of(middle))) return inner->a;
    }
  }
  return a.same_as(n.a) ? e : cast(to, std::move(a));
}

Expr Simplifier::simplify_call(const Expr& e, const Call& n) {
  bool changed = false;
  bool constant = true;
  std::vector<Expr> args;
  args.reserve(n.args.size());
  for (const Expr& arg : n.args) {
    args.push_back(simplify(arg));
    changed |= !args.back().same_as(arg);
    constant &= constant_of(args.back()).has_value();
  }
  if (constant) {
    const Scalar second = args.size() > 1 ? *constant_of(args[1]) : Scalar{};
    return imm_of(eval_call(n.intrinsic, *constant_of(args[0]), second));
  }
  if (n.intrinsic == Intrinsic::kAbs && is_int(e.dtype()) && e.dtype() != DType::kU64) {
    const Interval r = e.dtype() == DType::kI64 ? interval(linearize(args[0])) : atom_bounds(args[0]);
    if (r.min >= 0) return args[0];
  }
  return changed ? call(n.intrinsic, std::move(args)) : e;
}

Expr Simplifier::simplify_load(const Expr& e, const Load& n) {
  bool changed = false;
  std::vector<Expr> indices;
  indices.reserve(n.indices.size());
  for (const Expr& index : n.indices) {
    indices.push_back(simplify(index));
    changed |= !indices.back().same_as(index);
  }
  return changed ? load(n.buffer, std::move(indices)) : e;
}

Expr simplify(const Expr& e, const VarBounds& vars) {
  TS_CHECK(e.defined(), "simplify of an undefined expression");
  return Simplifier(vars).simplify(e);
}

}  // namespace tensorsmith::ir
