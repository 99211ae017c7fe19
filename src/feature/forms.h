// Index arithmetic for feature extraction: sums over the loops around a statement, simplified as they are
// made, in flat arrays. A form asks its loops by their depth, so ranges and strides cost a few additions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/affine.h"
#include "ir/expr.h"

namespace tensorsmith::feature {

using Form = ir::AffineSlice;  // terms in the arena
using ValueRange = ir::Interval;
inline constexpr int64_t kUnknownBound = ir::kIndexLimit;  // magnitude from which a bound means "unknown"

// What a variable stands for.
using Binding = std::pair<const ir::VarNode*, Form>;

struct FormAtom : ir::AffineAtom<Form> {
  size_t depth = 0;                // kVariable; c is the extent then
  uint64_t loops = 0;              // bit d: the loop at depth d occurs
  const ir::Expr* expr = nullptr;  // kEither, kOpaque
};

// Values beyond +-kUnknownBound saturate.
class FormArena : public ir::AffineArena<FormArena, FormAtom> {
 public:
  using Kind = ir::AffineKind;
  using Atom = FormAtom;
  // As TVM simplifies: only a factor that all terms share with a divisor is split off, or one of two terms
  // (absorbed()).
  static constexpr bool kSplitsSomeTerms = false;
  static constexpr bool kDividesRemainders = false;
  static constexpr bool kDividesShifted = false;

  Form loop(size_t depth, int64_t extent);
  // a + factor * b, recombined.
  Form add(const Form& a, const Form& b, int64_t factor = 1) {
    const Form sum = merge(a, b, factor);
    return a.count == 0 || b.count == 0 ? sum : recombined(sum);
  }
  // Of an integer expression; the innermost binding of a variable counts, unbound ones are opaque. The
  // expression must outlive the arena's contents.
  Form of(const ir::Expr& e, std::span<const Binding> bindings);

  uint64_t loops_of(const Form& f) const;
  // What a guard around a statement says: f < limit, and with it x < c * limit for f = floordiv(x, c). Forms
  // made from now on are simplified with it, until drop_assumptions(). Like TVM's, the knowledge is about
  // this very form or loop; no other sum is bounded by it.
  void assume_below(const Form& f, int64_t limit);
  void drop_assumptions();
  // Enclosure while all loops run.
  ValueRange range(const Form& f) const;
  // While loops at depth >= level run and the outer ones stand at 0.
  ValueRange range_from(const Form& f, size_t level) const;
  // Enclosure of a - b.
  ValueRange range_of_difference(const Form& a, const Form& b);
  // The form after TVM's rewriting, which follows its canonicalization: with c = k * d and 0 <= y < k,
  // floordiv(k * x + y, c) = floordiv(x, d); floormod(k * x + y, c) = floormod((k mod c) * x + y, c). Only
  // sums of two are rewritten, and no quotient inside of a remainder.
  Form rewritten(Form f);
  // TVM's approximation of how far the value moves with the loop (CoefficientExtractor): the last factor
  // before which, in the order of the printed expression, the loop's variable stands, else 1. Exact where the
  // loop is the innermost one of a sum. The loop must occur.
  int64_t coefficient_guess(const Form& f, size_t depth) const;

 private:
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
  bool absorbs_ = true;                                  // quotients made now may be absorbed()
  std::vector<std::pair<size_t, ValueRange>> narrowed_;  // atoms and their ranges without assumptions
};

}  // namespace tensorsmith::feature
