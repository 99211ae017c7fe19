// Index arithmetic while loops are being generated: sums over loop variables whose ranges are known at this
// place. Lowering decides guards and cuts loops with it, and writes expressions out already simplified.
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

// The atoms: loop variables, and quotients, remainders, minima, maxima of sums, and expressions that nothing
// is known about. Equal ones are one atom as long as scopes last.
class IndexArena : public ir::AffineValues<IndexArena, IndexAtom> {
 public:
  // Atoms made and facts learnt after mark() are forgotten by rollback(mark). Indices that contain such atoms
  // must not be used any more.
  struct Mark {
    size_t atoms = 0, facts = 0;
  };
  Mark mark() const { return {atoms_.size(), facts_.size()}; }
  void rollback(const Mark& mark);

  Index loop(const ir::Var& var, int64_t extent);
  Index opaque(const ir::Expr& e, ir::Interval range = {});

  // Enclosure of the values, with the facts.
  ir::Interval range(const Index& a) const;
  ir::Expr to_expr(const Index& a) const;
  // a op 0 for a comparison; terms are spread over both sides so that no coefficient is negative. Decided
  // ones become constants.
  ir::Expr compare(ir::BinaryOp op, const Index& a) const;

  // Narrows what is known about an index of the form atom + constant for the rest of a scope; without effect
  // on other forms. Restore with the returned state. Atoms that depend on it keep what they were made with,
  // so make them inside the scope and roll back at its end.
  struct Saved {
    int32_t atom = -1;
    ir::Interval range;
  };
  Saved restrict_to(const Index& a, ir::Interval range);
  void restore(const Saved& saved);
  // a <= 0 from here on.
  void learn_not_positive(const Index& a) {
    if (!a.is_constant()) facts_.push_back(a);
  }
  // Replaces atoms known to have one value by it.
  Index resolve(const Index& a);
  // An index that is below 0 if and only if a is; x // c - k gives x - k * c.
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
