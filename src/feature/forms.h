// Index arithmetic for feature extraction: sums over the loops around a statement, simplified as
// they are built, in flat arrays. Forms refer to loops by depth, so ranges and strides cost a few
// additions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/affine.h"
#include "ir/expr.h"

namespace tensorsmith::feature {

using Form = ir::AffineSlice;  // its terms are in the arena
using ValueRange = ir::Interval;
// Bounds of this magnitude and above mean "unknown".
inline constexpr int64_t kUnknownBound = ir::kIndexLimit;

// A variable and the form that it stands for.
using Binding = std::pair<const ir::VarNode*, Form>;

struct FormAtom : ir::AffineAtom<Form> {
  size_t depth = 0;                // of the loop of a kVariable, whose extent is c
  uint64_t loops = 0;              // bit d: the loop at depth d occurs in the atom
  const ir::Expr* expr = nullptr;  // kEither, kOpaque
};

// Arena of forms. Values beyond +-kUnknownBound saturate.
class FormArena : public ir::AffineArena<FormArena, FormAtom> {
 public:
  using Kind = ir::AffineKind;
  using Atom = FormAtom;
  // Simplifies like TVM: only a factor that all terms share with a divisor is split off, or one of
  // two terms (absorbed()).
  static constexpr bool kSplitsSomeTerms = false;
  static constexpr bool kDividesRemainders = false;
  static constexpr bool kDividesShifted = false;

  Form loop(size_t depth, int64_t extent);
  // Returns a + factor * b, recombined.
  Form add(const Form& a, const Form& b, int64_t factor = 1) {
    const Form sum = merge(a, b, factor);
    return a.count == 0 || b.count == 0 ? sum : recombined(sum);
  }
  // Returns the form of an integer expression. The innermost binding of a variable counts; unbound
  // variables are opaque. The expression must outlive the arena's contents.
  Form of(const ir::Expr& e, std::span<const Binding> bindings);

  uint64_t loops_of(const Form& f) const;
  // Assumes what a guard around a statement implies: f < limit, and thereby x < c * limit for f =
  // floordiv(x, c). Forms made from now on are simplified with it until drop_assumptions(). As in
  // TVM, the assumption only applies to this very form or loop and bounds no other sum.
  void assume_below(const Form& f, int64_t limit);
  void drop_assumptions();
  // Returns bounds of the form while all loops run.
  ValueRange range(const Form& f) const;
  // Returns bounds while the loops at depth >= level run and the outer ones stay at 0.
  ValueRange range_from(const Form& f, size_t level) const;
  // Returns bounds of a - b.
  ValueRange range_of_difference(const Form& a, const Form& b);
  // Returns the form after TVM's rewriting, which follows its canonicalization. With c = k * d and
  // 0 <= y < k: floordiv(k * x + y, c) = floordiv(x, d) and floormod(k * x + y, c) = floormod((k
  // mod c) * x + y, c). Only sums of two terms are rewritten, and no quotient inside a remainder.
  Form rewritten(Form f);
  // Returns TVM's approximation of how far the value moves with the loop (CoefficientExtractor):
  // the last factor that the loop's variable precedes in the printed expression, else 1. It is
  // exact if the loop is the innermost one of a sum. The loop must occur in the form.
  int64_t coefficient_guess(const Form& f, size_t depth) const;

 private:
  class Reader;  // turns expressions into forms
  struct Coefficient {
    bool variable = false, product = false, sum = false;
    int64_t value = 1;
  };
  friend ir::AffineRules<FormArena, Form>;
  friend ir::InternedAffine<FormArena, Form, FormAtom>;
  static int64_t multiply_add(int64_t a, int64_t b, int64_t factor) {
    return ir::saturating_multiply_add(a, b, factor);
  }
  std::optional<Form> recombine_once(const Form& f);
  Form divide_again(const Form& dividend, int64_t c);
  Form divided(Kind kind, const Form& rest, int64_t c, const ValueRange& values);
  std::optional<Form> absorbed(const Form& f, int64_t c);
  void describe(Atom& atom) const { atom.loops = loops_of(atom.a) | loops_of(atom.b); }
  Form intern(Kind kind, const Form& a, const Form& b, int64_t c, const ValueRange& range);
  Form known(size_t atom, const ValueRange& range);
  void find_coefficient(const Form& f, size_t depth, Coefficient& out) const;
  Form rewritten_atom(Term term);
  Form reduced(Form f, int64_t c);
  uint64_t loops_of(const ir::Expr& e, std::span<const Binding> bindings) const;
  ValueRange atom_range_from(const Atom& atom, size_t level) const;

  struct Assumption {
    Form below;
    int64_t limit = 0;
  };
  std::vector<Assumption> assumptions_;
  bool absorbs_ = true;                                  // whether new quotients may be absorbed()
  std::vector<std::pair<size_t, ValueRange>> narrowed_;  // atoms and their ranges before the assumptions
};

}  // namespace tensorsmith::feature
