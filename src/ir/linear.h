// Linear sums over index expressions, the working form of the simplifier and of bound analysis.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/expr.h"

namespace tensorsmith::ir {

// Of kI64 values; an atom is any kI64 expression that is not itself a sum or a multiple. Terms are in the order
// of appearance. bad: some coefficient left int64; the form means nothing then.
struct LinearSum : AffineSum<Expr> {
  bool bad = false;

  bool is_constant() const { return !bad && terms.empty(); }

  void add_constant(int64_t value, int64_t scale = 1);
  void add_term(const Expr& atom, int64_t coefficient);
  void add(const LinearSum& other, int64_t scale = 1);
  int64_t coefficient_of(const Expr& atom) const;
};

// Whether two expressions are one atom.
bool same_atom(const Expr& a, const Expr& b);

LinearSum difference(const LinearSum& a, const LinearSum& b);

// The sum as it stands: + - and multiplication by constants taken apart, everything else an atom.
LinearSum linearize(const Expr& e);
// Adds scale * e, taken apart in the same way.
void accumulate(const Expr& e, int64_t scale, LinearSum& out);

// The sum of variables that a kI64 expression is, as it stands or after simplification; nullopt if it is none.
// Terms are in the order of appearance.
std::optional<AffineSum<Var>> as_affine(const Expr& e);

// Positive terms first, larger coefficients first, ties in the order of appearance.
void sort_terms(LinearSum& sum);
// The expression of sum: positive terms, then subtracted ones, then the constant. The sum is not bad.
Expr to_expr(const LinearSum& sum);

// Interval arithmetic; results that leave int64 become unknown.
Interval add(Interval a, Interval b);
Interval multiply(Interval a, Interval b);
Interval multiply(Interval a, int64_t factor);
Interval unite(Interval a, Interval b);
Interval intersect(Interval a, Interval b);
// All values of an integer dtype or bool; everything() for 64-bit ones.
Interval range_of(DType dtype);
inline bool within(Interval inner, Interval outer) {
  return inner.min >= outer.min && inner.max <= outer.max;
}

}  // namespace tensorsmith::ir
