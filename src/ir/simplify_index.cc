// Simplification of kI64 expressions, which count as index arithmetic: nothing overflows in them.
#include <algorithm>
#include <numeric>
#include <utility>

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

// The sum of a simplified expression that is usually an atom; the builders may have folded it into something
// else.
LinearSum atom_sum(const Expr& e) {
  LinearSum out = linearize(e);
  if (out.bad) {
    out = {};
    out.terms.push_back({e, 1});
  }
  return out;
}

// The expression of a sum, its terms in canonical order.
Expr ordered_expr(LinearSum sum) {
  sort_terms(sum);
  return to_expr(sum);
}

// n = divisor * quotient + rest, rest without multiples of the divisor and its constant in [0, divisor).
void split(const LinearSum& n, int64_t divisor, LinearSum& quotient, LinearSum& rest) {
  for (const LinearSum::Term& term : n.terms) {
    if (term.coefficient % divisor == 0) {
      quotient.terms.push_back({term.atom, term.coefficient / divisor});
    } else {
      rest.terms.push_back(term);
    }
  }
  quotient.constant = floor_div(n.constant, divisor);
  rest.constant = floor_mod(n.constant, divisor);
}

// The divisors of `divisor` that some terms have in common with it, largest first.
std::vector<int64_t> common_factors(const LinearSum& sum, int64_t divisor) {
  std::vector<int64_t> out;
  for (const LinearSum::Term& term : sum.terms) {
    const int64_t g = std::gcd(term.coefficient, divisor);
    if (g > 1) out.push_back(g);
  }
  std::sort(out.begin(), out.end(), std::greater<>());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// The node op(x, constant > 0), or null.
const Binary* by_constant(const Expr& e, BinaryOp op) {
  const Binary* n = as<Binary>(e);
  if (n == nullptr || n->op != op) return nullptr;
  const IntImm* imm = as<IntImm>(n->b);
  return imm != nullptr && imm->value > 0 ? n : nullptr;
}
int64_t divisor_of(const Binary* n) { return as<IntImm>(n->b)->value; }

}  // namespace

// sum = g * multiple + small with 0 <= small < g for all values, small without the terms divisible by g;
// false if there is no such pair.
bool Simplifier::separate(const LinearSum& sum, int64_t g, LinearSum& multiple, LinearSum& small) {
  const int64_t constant = floor_mod(sum.constant, g);
  Interval range = Interval::point(constant);
  for (const LinearSum::Term& term : sum.terms) {
    if (term.coefficient % g != 0) range = add(range, multiply(atom_bounds(term.atom), term.coefficient));
  }
  const auto k = single_quotient(range, g);
  if (!k.has_value()) return false;
  for (const LinearSum::Term& term : sum.terms) {
    if (term.coefficient % g == 0) {
      multiple.terms.push_back({term.atom, term.coefficient / g});
    } else {
      small.terms.push_back(term);
    }
  }
  multiple.constant = floor_div(sum.constant, g);
  multiple.add_constant(*k);
  small.constant = constant;
  small.add_constant(*k, -g);
  return true;
}

// floor(n / divisor), divisor > 0:
//   (16*o + i) // 16 => o + i // 16 => o if 0 <= i < 16
//   (4*i + j) // 16 => i // 4       if 0 <= j < 4
//   (x // a) // b => x // (a*b);  (x % (a*b)) // a => (x // a) % b
LinearSum Simplifier::div_const(const LinearSum& n, int64_t divisor) {
  if (divisor == 1 || n.bad) return n;
  LinearSum quotient;
  LinearSum rest;
  split(n, divisor, quotient, rest);
  recombine(rest);
  if (rest.bad) return rest;
  if (rest.constant < 0 || rest.constant >= divisor) {
    quotient.add_constant(floor_div(rest.constant, divisor));
    rest.constant = floor_mod(rest.constant, divisor);
  }
  if (rest.terms.empty()) return quotient;
  if (const auto k = single_quotient(interval(rest), divisor)) {
    quotient.add_constant(*k);
    return quotient;
  }
  for (int64_t g : common_factors(rest, divisor)) {
    LinearSum multiple;
    LinearSum small;
    if (!separate(rest, g, multiple, small)) continue;
    quotient.add(div_const(multiple, divisor / g));
    return quotient;
  }
  if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
    const Expr& atom = rest.terms[0].atom;
    int64_t product = 0;
    if (const Binary* d = by_constant(atom, BinaryOp::kFloorDiv);
        d != nullptr && !__builtin_mul_overflow(divisor, divisor_of(d), &product)) {
      LinearSum inner = linearize(d->a);
      inner.add_constant(rest.constant, divisor_of(d));
      quotient.add(div_const(inner, product));
      return quotient;
    }
    if (const Binary* m = by_constant(atom, BinaryOp::kFloorMod);
        m != nullptr && rest.constant == 0 && divisor_of(m) % divisor == 0) {
      quotient.add(mod_const(div_const(linearize(m->a), divisor), divisor_of(m) / divisor));
      return quotient;
    }
  }
  quotient.add_term(floordiv(ordered_expr(rest), divisor), 1);
  return quotient;
}

// n - floor(n / divisor) * divisor, divisor > 0:
//   (16*o + i) % 16 => i % 16 => i      if 0 <= i < 16
//   (4*i + j) % 16 => 4 * (i % 4) + j   if 0 <= j < 4
//   (x % (a*b)) % a => x % a
LinearSum Simplifier::mod_const(const LinearSum& n, int64_t divisor) {
  if (n.bad) return n;
  if (divisor == 1) return {};
  LinearSum quotient;
  LinearSum rest;
  split(n, divisor, quotient, rest);
  for (const LinearSum::Term& term : rest.terms) {
    const Binary* m = by_constant(term.atom, BinaryOp::kFloorMod);
    int64_t period = 0;
    if (m == nullptr || __builtin_mul_overflow(term.coefficient, divisor_of(m), &period) ||
        period % divisor != 0)
      continue;
    LinearSum inner = rest;
    inner.add_term(term.atom, -term.coefficient);
    accumulate(m->a, term.coefficient, inner);
    return mod_const(inner, divisor);
  }
  recombine(rest);
  if (rest.bad) return rest;
  rest.constant = floor_mod(rest.constant, divisor);
  if (rest.terms.empty()) return rest;
  if (const auto k = single_quotient(interval(rest), divisor)) {
    rest.add_constant(*k, -divisor);
    return rest;
  }
  for (int64_t g : common_factors(rest, divisor)) {
    LinearSum multiple;
    LinearSum small;
    if (!separate(rest, g, multiple, small)) continue;
    small.add(mod_const(multiple, divisor / g), g);
    return small;
  }
  return atom_sum(floormod(ordered_expr(rest), divisor));
}

// One of
//   (x // c) * c + x % c => x
//   ((x // a) % b) * a + x % a => x % (a*b)
//   x - (x // c) * c => x % c
// scaled by any factor and next to any other terms.
bool Simplifier::recombine_once(LinearSum& sum) {
  // Is scale * part (but its constant) in the sum?
  const auto contains = [&](const LinearSum& part, int64_t scale) {
    for (const LinearSum::Term& term : part.terms) {
      int64_t wanted = 0;
      if (__builtin_mul_overflow(term.coefficient, scale, &wanted) || sum.coefficient_of(term.atom) != wanted)
        return false;
    }
    return !part.bad && !part.terms.empty();
  };
  for (const LinearSum::Term& term : sum.terms) {
    const int64_t scale = term.coefficient;
    if (const Binary* m = by_constant(term.atom, BinaryOp::kFloorMod)) {
      int64_t step = 0;
      if (__builtin_mul_overflow(scale, divisor_of(m), &step) || step == INT64_MIN) continue;
      const LinearSum x = linearize(m->a);
      const LinearSum quotient = div_const(x, divisor_of(m));
      if (quotient.bad) continue;
      if (contains(quotient, step)) {
        LinearSum out = sum;
        out.add_term(term.atom, -scale);
        out.add(quotient, -step);
        out.add(x, scale);
        sum = std::move(out);
        return true;
      }
      const Expr quotient_expr = ordered_expr(quotient);
      for (const LinearSum::Term& other : sum.terms) {
        const Binary* outer = by_constant(other.atom, BinaryOp::kFloorMod);
        int64_t product = 0;
        if (outer == nullptr || other.coefficient != step || !structural_equal(outer->a, quotient_expr) ||
            __builtin_mul_overflow(divisor_of(m), divisor_of(outer), &product))
          continue;
        const LinearSum joined = mod_const(x, product);
        if (joined.bad || joined.terms.size() != 1) continue;
        LinearSum out = sum;
        out.add_term(term.atom, -scale);
        out.add_term(other.atom, -step);
        out.add(joined, scale);
        sum = std::move(out);
        return true;
      }
    } else if (const Binary* d = by_constant(term.atom, BinaryOp::kFloorDiv)) {
      if (scale % divisor_of(d) != 0 || scale == INT64_MIN) continue;
      const LinearSum x = linearize(d->a);
      const int64_t factor = -(scale / divisor_of(d));
      if (!contains(x, factor)) continue;
      LinearSum out = sum;
      out.add_term(term.atom, -scale);
      out.add(x, -factor);
      out.add(mod_const(x, divisor_of(d)), factor);
      sum = std::move(out);
      return true;
    }
  }
  return false;
}

void Simplifier::recombine(LinearSum& sum) {
  // Each success removes a division or joins two remainders; the limit only guards against surprises.
  for (int round = 0; round < 16 && !sum.bad && sum.terms.size() >= 2; ++round) {
    if (!recombine_once(sum)) return;
  }
}

LinearSum Simplifier::div_general(const LinearSum& a, const LinearSum& b, bool truncate) {
  if (b.is_constant()) {
    if (b.constant == 0) return constant_sum(0);
    if (b.constant != INT64_MIN) {
      // Both roundings are symmetric in the signs of both operands together; truncation in each of them.
      LinearSum n;
      n.add(a, b.constant < 0 ? -1 : 1);
      const int64_t divisor = b.constant < 0 ? -b.constant : b.constant;
      const Interval range = interval(n);
      if (!truncate || range.min >= 0) return div_const(n, divisor);
      if (range.max <= 0) {
        LinearSum negated;
        negated.add(n, -1);
        LinearSum out;
        out.add(div_const(negated, divisor), -1);
        return out;
      }
    }
  } else if (interval(a).min >= 0 && interval(difference(a, b)).max < 0) {
    return constant_sum(0);
  }
  return atom_sum(binary(truncate ? BinaryOp::kDiv : BinaryOp::kFloorDiv, to_expr(a), to_expr(b)));
}

LinearSum Simplifier::mod_general(const LinearSum& a, const LinearSum& b) {
  if (b.is_constant()) {
    if (b.constant == 0) return constant_sum(0);
    if (b.constant > 0) return mod_const(a, b.constant);
    if (b.constant != INT64_MIN) {
      LinearSum negated;
      negated.add(a, -1);
      LinearSum out;
      out.add(mod_const(negated, -b.constant), -1);
      return out;
    }
  } else if (interval(a).min >= 0 && interval(difference(a, b)).max < 0) {
    return a;
  }
  return atom_sum(floormod(to_expr(a), to_expr(b)));
}

LinearSum Simplifier::min_max(BinaryOp op, const LinearSum& a, const LinearSum& b) {
  const bool is_min = op == BinaryOp::kMin;
  // 1: x always wins against y; -1: y against x; 0: unknown.
  const auto winner = [&](const LinearSum& x, const LinearSum& y) {
    const Interval d = interval(difference(x, y));
    if (is_min ? d.max <= 0 : d.min >= 0) return 1;
    return (is_min ? d.min >= 0 : d.max <= 0) ? -1 : 0;
  };
  if (const int w = winner(a, b); w != 0) return w > 0 ? a : b;
  // op(op(p, q), y) loses p or q where y beats it.
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

LinearSum Simplifier::linear_binary(const Expr& e, const Binary& n) {
  const LinearSum a = linear(n.a);
  const LinearSum b = linear(n.b);
  LinearSum out;
  switch (n.op) {
    case BinaryOp::kAdd:
      out = a;
      out.add(b);
      break;
    case BinaryOp::kSub:
      out = difference(a, b);
      break;
    case BinaryOp::kMul:
      if (b.is_constant()) {
        out.add(a, b.constant);
      } else if (a.is_constant()) {
        out.add(b, a.constant);
      } else {
        out = atom_sum(to_expr(a) * to_expr(b));
      }
      break;
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
      out = div_general(a, b, n.op == BinaryOp::kDiv);
      break;
    case BinaryOp::kFloorMod:
      out = mod_general(a, b);
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      out = min_max(n.op, a, b);
      break;
    case BinaryOp::kShl:
      if (b.is_constant() && b.constant >= 0 && b.constant < 62) {
        out.add(a, int64_t{1} << b.constant);
      } else {
        out = atom_sum(binary(n.op, to_expr(a), to_expr(b)));
      }
      break;
    case BinaryOp::kShr:
      if (b.is_constant() && b.constant >= 0 && b.constant < 62) {
        out = div_const(a, int64_t{1} << b.constant);
      } else {
        out = atom_sum(binary(n.op, to_expr(a), to_expr(b)));
      }
      break;
    case BinaryOp::kBitAnd:
      // x & (2^k - 1) => x % 2^k
      if (b.is_constant() && b.constant > 0 && b.constant < INT64_MAX &&
          ((b.constant + 1) & b.constant) == 0) {
        out = mod_const(a, b.constant + 1);
      } else {
        out = atom_sum(binary(n.op, to_expr(a), to_expr(b)));
      }
      break;
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
      out = atom_sum(binary(n.op, to_expr(a), to_expr(b)));
      break;
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      throw_internal_error(__FILE__, __LINE__, "a condition among index expressions");
  }
  if (!out.bad) return out;
  // A coefficient left int64: keep the operator as it is.
  const Expr kept_a = to_expr(a);
  const Expr kept_b = to_expr(b);
  if (kept_a.same_as(n.a) && kept_b.same_as(n.b)) return atom_sum(e);
  return atom_sum(binary(n.op, kept_a, kept_b));
}

LinearSum Simplifier::linear_atom(const Expr& e) {
  if (const VarRef* ref = as<VarRef>(e)) {
    const Interval r = range(ref->var);
    return r.min == r.max ? constant_sum(r.min) : atom_sum(e);
  }
  if (const Binary* n = as<Binary>(e)) return linear_binary(e, *n);
  if (const Unary* n = as<Unary>(e)) {
    // -x, and ~x = -1 - x
    LinearSum out;
    out.add(linear(n->a), -1);
    if (n->op == UnaryOp::kBitNot) out.add_constant(-1);
    return out.bad ? atom_sum(e) : out;
  }
  const Expr simple = simplify_node(e);
  // What was a select or a cast may have become any other simplified expression.
  return atom_sum(simple);
}

void Simplifier::collect(const Expr& e, int64_t scale, LinearSum& out) {
  if (out.bad) return;
  if (const IntImm* imm = as<IntImm>(e)) return out.add_constant(imm->value, scale);
  if (const Binary* n = as<Binary>(e); n != nullptr && (n->op == BinaryOp::kAdd || n->op == BinaryOp::kSub)) {
    collect(n->a, scale, out);
    if (n->op == BinaryOp::kSub && __builtin_mul_overflow(scale, int64_t{-1}, &scale)) out.bad = true;
    return collect(n->b, scale, out);
  }
  out.add(linear_atom(e), scale);
}

// Never bad.
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
