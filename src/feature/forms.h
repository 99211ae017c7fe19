// Index arithmetic for feature extraction: sums over the loops around a statement, simplified as they are
// made, in flat arrays. A form asks its loops by their depth, so ranges and strides cost a few additions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::feature {

// constant + sum(coefficient * atom), terms sorted by atom, no zero coefficient; the terms are
// FormArena::terms()[begin, begin + count).
struct Form {
  int64_t constant = 0;
  uint32_t begin = 0, count = 0;
  bool is_constant() const { return count == 0; }
};

struct ValueRange {
  int64_t min = 0, max = 0;
};
inline constexpr int64_t kUnknownBound = int64_t{1} << 60;  // magnitude from which a bound means "unknown"

// What a variable stands for.
using Binding = std::pair<const ir::VarNode*, Form>;

class FormArena {
 public:
  struct Term {
    int32_t atom = 0;
    int64_t coefficient = 0;
  };
  enum class Kind : uint8_t {
    kLoop,      // a loop variable
    kFloorDiv,  // floordiv(a, c), c > 0
    kFloorMod,
    kMin,
    kMax,
    kEither,  // a or b: a select; the condition is in the expression
    kOpaque,  // an expression that nothing is known about
  };
  struct Atom {
    Kind kind = Kind::kLoop;
    int depth = 0;       // kLoop
    uint64_t loops = 0;  // bit d: the loop at depth d occurs
    int64_t c = 1;       // divisor; kLoop: extent
    Form a, b;
    ValueRange range;                // while all loops run
    const ir::Expr* expr = nullptr;  // kEither, kOpaque
  };

  void clear() {
    terms_.clear();
    atoms_.clear();
  }
  // Forms and atoms made since are forgotten by rollback.
  std::pair<size_t, size_t> mark() const { return {terms_.size(), atoms_.size()}; }
  void rollback(std::pair<size_t, size_t> mark) {
    terms_.resize(mark.first);
    atoms_.resize(mark.second);
  }

  static Form constant(int64_t value) { return {value, 0, 0}; }
  Form loop(int depth, int64_t extent);
  Form add(Form a, Form b, int64_t factor = 1);  // a + factor * b
  Form scale(Form a, int64_t factor) { return add({}, a, factor); }
  Form floordiv(Form a, int64_t c) { return floordiv(a, c, true); }
  Form floormod(Form a, int64_t c);
  Form minimum(Form a, Form b);
  Form maximum(Form a, Form b);
  // Of an integer expression; the innermost binding of a variable counts, unbound ones are opaque. The
  // expression must outlive the arena's contents.
  Form of(const ir::Expr& e, std::span<const Binding> bindings);

  std::span<const Term> terms(const Form& f) const { return {terms_.data() + f.begin, f.count}; }
  const Atom& atom(const Term& t) const { return atoms_[static_cast<size_t>(t.atom)]; }
  uint64_t loops_of(const Form& f) const;
  // What a guard around a statement says: f < limit, and with it x < c * limit for f = floordiv(x, c). Forms
  // made from now on are simplified with it, until drop_assumptions(). Like TVM's, the knowledge is about
  // this very form or loop; no other sum is bounded by it.
  void assume_below(const Form& f, int64_t limit);
  void drop_assumptions();
  // Enclosure while all loops run.
  ValueRange range(const Form& f) const;
  // While loops at depth >= level run and the outer ones stand at 0.
  ValueRange range_from(const Form& f, int level) const;
  // Enclosure of a - b.
  ValueRange range_of_difference(const Form& a, const Form& b);
  // The form after TVM's rewriting, which follows its canonicalization: with c = k * d and 0 <= y < k,
  // floordiv(k * x + y, c) = floordiv(x, d); floormod(k * x + y, c) = floormod((k mod c) * x + y, c). Only
  // sums of two are rewritten, and no quotient inside of a remainder.
  Form rewritten(Form f);
  // TVM's approximation of how far the value moves with the loop (CoefficientExtractor): the last factor
  // before which, in the order of the printed expression, the loop's variable stands, else 1. Exact where the
  // loop is the innermost one of a sum. The loop must occur.
  int64_t coefficient_guess(const Form& f, int depth) const;

 private:
  struct Coefficient {
    bool variable = false, product = false, sum = false;
    int64_t value = 1;
  };
  // absorbs: with c = k * d and 0 <= y < k, floordiv(k * x + y, c) becomes floordiv(x, d).
  Form floordiv(Form a, int64_t c, bool absorbs);
  std::optional<Form> absorbed(const Form& f, int64_t c);
  void find_coefficient(const Form& f, int depth, Coefficient& out) const;
  Form rewritten_atom(Term term);
  Form reduced(Form f, int64_t c);
  Form intern(Kind kind, Form a, Form b, int64_t c, ValueRange range);
  Form of_atom(Atom atom);
  Form recombined(Form f);
  bool equal(const Form& a, const Form& b) const;
  uint64_t loops_of(const ir::Expr& e, std::span<const Binding> bindings) const;
  ValueRange atom_range_from(const Atom& atom, int level) const;

  struct Assumption {
    Form below;
    int64_t limit = 0;
  };
  std::vector<Term> terms_;
  std::vector<Atom> atoms_;
  std::vector<Assumption> assumptions_;
  std::vector<std::pair<size_t, ValueRange>> narrowed_;  // atoms and their ranges without assumptions
};

}  // namespace tensorsmith::feature
