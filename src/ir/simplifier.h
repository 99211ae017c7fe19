// The implementation of ir/simplify.h and ir/bounds.h: simplification and bounds under facts that
// hold in scopes (loop ranges, conditions of enclosing branches). Internal to this directory; other
// code calls simplify() and bounds_of().
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/bounds.h"
#include "ir/expr.h"
#include "ir/expr_memo.h"
#include "ir/linear.h"
#include "ir/stmt.h"

namespace tensorsmith::ir {

// Returns the comparison that is true where this one is false.
BinaryOp inverse_of(BinaryOp comparison);

class Simplifier {
 public:
  // Keeps a reference to `vars`.
  explicit Simplifier(const VarBounds& vars) : vars_(vars) {}

  // Scopes: facts added after mark() are forgotten by rollback(mark).
  struct Mark {
    size_t ranges = 0, facts = 0, truths = 0;
  };
  Mark mark() const { return {ranges_.size(), facts_.size(), truths_.size()}; }
  void rollback(const Mark& mark);
  void bind(const Var& var, Interval range);
  // Assumes that the (already simplified) condition is true or false from here on. A condition that
  // contradicts known facts may be ignored: the code under it is unreachable.
  void assume(const Expr& condition, bool truth);
  // Assumes the condition during the execution of body; ignores conjuncts that depend on buffers
  // that body writes.
  void assume_during(const Stmt& body, const Expr& condition, bool truth);

  Expr simplify(const Expr& e);
  // Bounds of an integer or bool expression.
  Interval bounds(const Expr& e);

 private:
  // simplify_index.cc: kI64
  LinearSum linear(const Expr& e);
  void collect(const Expr& e, int64_t scale, LinearSum& out);
  LinearSum linear_general(BinaryOp op, const LinearSum& a, const LinearSum& b);
  class Rules;   // the algebra of ir/affine.h for sums over expressions
  class Reader;  // turns expressions into sums
  LinearSum div_const(const LinearSum& n, int64_t divisor);
  LinearSum mod_const(const LinearSum& n, int64_t divisor);
  LinearSum div_general(const LinearSum& a, const LinearSum& b, bool truncate);
  LinearSum mod_general(const LinearSum& a, const LinearSum& b);
  LinearSum min_max(BinaryOp op, const LinearSum& a, const LinearSum& b);
  void recombine(LinearSum& sum);

  // simplify_expr.cc: everything except kI64
  Expr simplify_under_facts(const Expr& e);
  Expr simplify_node(const Expr& e);
  Expr simplify_unary(const Expr& e, const Unary& n);
  Expr simplify_binary(const Expr& e, const Binary& n);
  Expr simplify_comparison(const Expr& e, const Binary& n);
  bool is_unbounded_data(const LinearSum& sum);
  Expr compare_index(BinaryOp op, const Expr& a, const Expr& b);
  Expr compare_with_zero(BinaryOp op, LinearSum d);
  Expr less_than_zero(LinearSum d);
  Expr equals_zero(LinearSum d, bool equal);
  Expr simplify_logical(const Expr& e, const Binary& n);
  Expr simplify_select(const Expr& e, const Select& n);
  Expr simplify_cast(const Expr& e, const Cast& n);
  Expr simplify_call(const Expr& e, const Call& n);
  Expr simplify_load(const Expr& e, const Load& n);
  Expr negate(const Expr& condition);

  // bounds.cc
  Interval range(const Var& var) const;
  Interval interval(const LinearSum& sum, int lifts = 2);  // uses facts, and lifts sums into at most this
                                                           // many divisions
  Interval interval_lifted(const LinearSum& sum, int lifts);
  Interval interval_plain(const LinearSum& sum);  // uses no facts
  Interval interval_split(const LinearSum& sum, int& budget);
  Interval atom_bounds(const Expr& atom);
  Interval compute_bounds(const Expr& e);
  Interval binary_bounds(const Expr& e, const Binary& n);
  void assume_negative(const LinearSum& d, int budget = 3);  // d < 0

  const VarBounds& vars_;
  std::vector<std::pair<const VarNode*, Interval>> ranges_;
  std::vector<LinearSum> facts_;               // each is < 0
  std::vector<std::pair<Expr, bool>> truths_;  // conditions known to be true or false
  // Bounds of compound atoms under the present facts; the value keeps the key alive. On the way to
  // a bound, a fact is used at most once, because facts may be about the requested atom itself:
  // memo_[1] holds the bounds that were found without facts.
  using BoundsMemo = std::unordered_map<const ExprNode*, std::pair<Expr, Interval>>;
  BoundsMemo memo_[2];
  bool without_facts_ = false;

  ExprMemo<Expr> simple_;  // results of simplify() under the present facts

  // Called after any change of the known facts.
  void forget_results() {
    simple_.clear();
    memo_[0].clear();
    memo_[1].clear();
  }
};

}  // namespace tensorsmith::ir
