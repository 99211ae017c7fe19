#include "ir/linear.h"

#include <algorithm>
#include <utility>

#include "ir/affine.h"
#include "ir/structural.h"

namespace tensorsmith::ir {

bool same_atom(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  const VarRef* x = as<VarRef>(a);
  const VarRef* y = as<VarRef>(b);
  if (x != nullptr || y != nullptr) return x != nullptr && y != nullptr && x->var == y->var;
  return structural_equal(a, b);
}

void LinearSum::add_constant(int64_t value, int64_t scale) {
  int64_t product = 0;
  if (__builtin_mul_overflow(value, scale, &product) || __builtin_add_overflow(constant, product, &constant))
    bad = true;
}

void LinearSum::add_term(const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!same_atom(terms[i].atom, atom)) continue;
    if (__builtin_add_overflow(terms[i].coefficient, coefficient, &terms[i].coefficient)) bad = true;
    if (terms[i].coefficient == 0) terms.erase(terms.begin() + i);
    return;
  }
  terms.push_back({atom, coefficient});
}

void LinearSum::add(const LinearSum& other, int64_t scale) {
  bad |= other.bad;
  add_constant(other.constant, scale);
  for (const Term& term : other.terms) {
    int64_t coefficient = 0;
    if (__builtin_mul_overflow(term.coefficient, scale, &coefficient)) bad = true;
    if (!bad) add_term(term.atom, coefficient);
  }
}

int64_t LinearSum::coefficient_of(const Expr& atom) const {
  for (const Term& term : terms) {
    if (same_atom(term.atom, atom)) return term.coefficient;
  }
  return 0;
}

LinearSum difference(const LinearSum& a, const LinearSum& b) {
  LinearSum out = a;
  out.add(b, -1);
  return out;
}

void accumulate(const Expr& e, int64_t scale, LinearSum& out) {
  if (const IntImm* imm = as<IntImm>(e)) return out.add_constant(imm->value, scale);
  if (const Binary* n = as<Binary>(e)) {
    if (n->op == BinaryOp::kAdd || n->op == BinaryOp::kSub) {
      accumulate(n->a, scale, out);
      if (n->op == BinaryOp::kSub && __builtin_mul_overflow(scale, int64_t{-1}, &scale)) out.bad = true;
      return accumulate(n->b, scale, out);
    }
    if (n->op == BinaryOp::kMul) {
      for (const auto& [factor, rest] : {std::pair(n->a, n->b), std::pair(n->b, n->a)}) {
        if (const IntImm* imm = as<IntImm>(factor)) {
          if (__builtin_mul_overflow(scale, imm->value, &scale)) out.bad = true;
          return accumulate(rest, scale, out);
        }
      }
    }
  }
  if (const Unary* n = as<Unary>(e); n != nullptr && n->op == UnaryOp::kNeg) {
    if (__builtin_mul_overflow(scale, int64_t{-1}, &scale)) out.bad = true;
    return accumulate(n->a, scale, out);
  }
  out.add_term(e, scale);
}

LinearSum linearize(const Expr& e) {
  LinearSum out;
  accumulate(e, 1, out);
  return out;
}

void sort_terms(LinearSum& sum) {
  const auto before = [](int64_t a, int64_t b) {
    return (a > 0) != (b > 0) ? a > 0 : (a > 0 ? a > b : a < b);
  };
  // Insertion sort: sums are short and mostly sorted.
  for (size_t i = 1; i < sum.terms.size(); ++i) {
    for (size_t k = i; k > 0 && before(sum.terms[k].coefficient, sum.terms[k - 1].coefficient); --k)
      std::swap(sum.terms[k], sum.terms[k - 1]);
  }
}

Expr to_expr(const LinearSum& sum) {
  TS_CHECK(!sum.bad, "the expression of a sum that overflowed");
  Expr out;
  for (const LinearSum::Term& term : sum.terms) {
    if (term.coefficient > 0) {
      Expr part = term.coefficient == 1 ? term.atom : term.atom * Expr(term.coefficient);
      out = out.defined() ? out + part : part;
    }
  }
  const bool has_positive = out.defined();
  if (!has_positive && sum.constant != 0) out = Expr(sum.constant);
  for (const LinearSum::Term& term : sum.terms) {
    if (term.coefficient > 0) continue;
    if (!out.defined() || term.coefficient == INT64_MIN) {
      const Expr part = term.coefficient == -1 ? -term.atom : term.atom * Expr(term.coefficient);
      out = out.defined() ? out + part : part;
    } else {
      out = out - (term.coefficient == -1 ? term.atom : term.atom * Expr(-term.coefficient));
    }
  }
  if (!out.defined()) return {sum.constant};
  if (has_positive && sum.constant != 0) {
    out =
        sum.constant > 0 || sum.constant == INT64_MIN ? out + Expr(sum.constant) : out - Expr(-sum.constant);
  }
  return out;
}

namespace {

int64_t add_bound(int64_t a, int64_t b, int64_t unknown) {
  int64_t out = 0;
  if (a == unknown || b == unknown || __builtin_add_overflow(a, b, &out)) return unknown;
  return out;
}

}  // namespace

Interval add(Interval a, Interval b) {
  return {add_bound(a.min, b.min, Interval::kNegInf), add_bound(a.max, b.max, Interval::kPosInf)};
}

Interval multiply(Interval a, int64_t factor) {
  if (factor == 0) return Interval::point(0);
  if (factor < 0) std::swap(a.min, a.max);
  Interval out;
  const bool low_known = a.min != Interval::kNegInf && a.min != Interval::kPosInf;
  const bool high_known = a.max != Interval::kNegInf && a.max != Interval::kPosInf;
  if (!low_known || __builtin_mul_overflow(a.min, factor, &out.min)) out.min = Interval::kNegInf;
  if (!high_known || __builtin_mul_overflow(a.max, factor, &out.max)) out.max = Interval::kPosInf;
  return out;
}

Interval multiply(Interval a, Interval b) {
  if (a.min == a.max) return multiply(b, a.min);
  if (b.min == b.max) return multiply(a, b.min);
  if (!a.bounded() || !b.bounded()) {
    // Only the sign is known.
    return a.min >= 0 && b.min >= 0 ? Interval{0, Interval::kPosInf} : Interval{};
  }
  Int128 low = static_cast<Int128>(a.min) * b.min;
  Int128 high = low;
  for (const auto& [x, y] : {std::pair(a.min, b.max), std::pair(a.max, b.min), std::pair(a.max, b.max)}) {
    const Int128 product = static_cast<Int128>(x) * y;
    low = std::min(low, product);
    high = std::max(high, product);
  }
  Interval out;
  if (low > INT64_MIN) out.min = low;
  if (high < INT64_MAX) out.max = high;
  return out;
}

Interval unite(Interval a, Interval b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Interval intersect(Interval a, Interval b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

Interval range_of(DType dtype) {
  if (is_float(dtype) || bits_of(dtype) == 64) return {};
  const bool negative = is_signed_int(dtype);
  const int64_t end = int64_t{1} << (bits_of(dtype) - (negative ? 1 : 0));
  return {negative ? -end : 0, end - 1};
}

}  // namespace tensorsmith::ir
