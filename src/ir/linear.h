// Linear sums over index expressions, the working form of the simplifier and of bound analysis.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/affine_sum.h"
#include "ir/bounds.h"
#include "ir/expr.h"

namespace tensorsmith::ir {

// A sum of kI64 values. An atom is any kI64 expression that is not itself a sum or a multiple.
// Terms are in the order of appearance. `bad` is set if a coefficient overflowed int64; the sum is
// meaningless then.
struct LinearSum : AffineSum<Expr> {
  bool bad = false;

  bool is_constant() const { return !bad && terms.empty(); }

  void add_constant(int64_t value, int64_t scale = 1);
  void add_term(const Expr& atom, int64_t coefficient);
  void add(const LinearSum& other, int64_t scale = 1);
  int64_t coefficient_of(const Expr& atom) const;
};

// Returns whether two expressions are the same atom.
bool same_atom(const Expr& a, const Expr& b);

LinearSum difference(const LinearSum& a, const LinearSum& b);

// Splits e into a sum without simplifying it: + - and multiplications by constants are taken apart,
// everything else is an atom.
LinearSum linearize(const Expr& e);
// Adds scale * e, split in the same way.
void accumulate(const Expr& e, int64_t scale, LinearSum& out);

// Returns a kI64 expression as a sum of variables, either directly or after simplification; nullopt
// if it is no such sum. Terms are in the order of appearance.
std::optional<AffineSum<Var>> as_affine(const Expr& e);

// Positive terms first, larger coefficients first, ties in the order of appearance.
void sort_terms(LinearSum& sum);
// Returns the sum as an expression: positive terms, then subtracted ones, then the constant. The
// sum must not be bad.
Expr to_expr(const LinearSum& sum);

// Interval arithmetic; results that overflow int64 become unknown.
Interval add(Interval a, Interval b);
Interval multiply(Interval a, Interval b);
Interval multiply(Interval a, int64_t factor);
Interval unite(Interval a, Interval b);
Interval intersect(Interval a, Interval b);
// Returns all values of an integer dtype or bool; everything() for 64-bit ones.
Interval range_of(DType dtype);
inline bool within(Interval inner, Interval outer) {
  return inner.min >= outer.min && inner.max <= outer.max;
}

}  // namespace tensorsmith::ir
