// Index arithmetic during the generation of loops: sums over loop variables whose ranges are known
// at the current place. Lowering uses it to decide guards, to cut loops, and to emit expressions
// that are already simplified.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/affine.h"
#include "ir/expr.h"

namespace tensorsmith::lower {

using Index = ir::AffineSum<int32_t>;

struct IndexAtom : ir::AffineAtom<Index> {
  ir::Expr expr;
};

// The atoms are loop variables; quotients, remainders, minima and maxima of sums; and opaque
// expressions. Equal ones are the same atom within a scope.
class IndexArena : public ir::AffineValues<IndexArena, IndexAtom> {
 public:
  // rollback(mark) forgets atoms and facts added after mark(). Indices that contain such atoms must
  // not be used any more.
  struct Mark {
    size_t atoms = 0, facts = 0;
  };
  Mark mark() const { return {atoms_.size(), facts_.size()}; }
  void rollback(const Mark& mark);

  Index loop(const ir::Var& var, int64_t extent);
  Index opaque(const ir::Expr& e, ir::Interval range = {});

  // Returns an enclosure of the values, using the facts.
  ir::Interval range(const Index& a) const;
  ir::Expr to_expr(const Index& a) const;
  // Returns the comparison `a op 0`, with the terms on both sides so that no coefficient is
  // negative. A decided comparison becomes a constant.
  ir::Expr compare(ir::BinaryOp op, const Index& a) const;

  // Narrows the range of an index of the form atom + constant for the rest of a scope; has no
  // effect on other forms. The returned state restores the range. Atoms that depend on it keep the
  // properties from their creation, so create them inside the scope and roll back at its end.
  struct Saved {
    int32_t atom = -1;
    ir::Interval range;
  };
  Saved restrict_to(const Index& a, ir::Interval range);
  void restore(const Saved& saved);
  // Assumes a <= 0 from here on.
  void learn_not_positive(const Index& a) {
    if (!a.is_constant()) facts_.push_back(a);
  }
  // Replaces atoms that are known to have a single value by that value.
  Index resolve(const Index& a);
  // Returns an index that is below 0 if and only if a is; for example x - k * c for x // c - k.
  Index less_than_zero(const Index& a) const;

 private:
  friend ir::AffineRules<IndexArena, Index>;
  friend ir::InternedAffine<IndexArena, Index, IndexAtom>;
  void describe(IndexAtom& atom) const;
  Index known(size_t atom, const ir::Interval& range);
  Index intern(ir::AffineKind kind, const Index& a, const Index& b, int64_t c, const ir::Interval& range);

  std::vector<Index> facts_;  // each is <= 0
};

}  // namespace tensorsmith::lower
