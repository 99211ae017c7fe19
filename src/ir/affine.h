// Affine sums of index values, and the rules for floordiv, floormod, min and max on them: one
// algebra for simplification, bound inference, lowering, features and code generation. An atom is
// an indivisible term of a sum: a loop variable, an expression, or a quotient that no rule
// simplifies.
//
// A user derives from AffineRules (any representation of sums), AffineValues (atoms in a table) or AffineArena
// (terms in a table, too, which saves allocations in code that runs once per candidate) and defines its policy
// in a few members. Every rule is exact for all integers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/floor_div.h"
#include "ir/affine_sum.h"
#include "ir/bounds.h"

namespace tensorsmith::ir {

using tensorsmith::floor_div;
using tensorsmith::floor_mod;

// An affine sum whose terms are the part [begin, begin + count) of an arena's terms.
struct AffineSlice {
  using Term = AffineTerm<int32_t>;
  int64_t constant = 0;
  uint32_t begin = 0, count = 0;
  bool is_constant() const { return count == 0; }
};

__extension__ using Int128 = __int128;

// Returns a + b * factor, modulo 2^64.
inline int64_t wrapping_multiply_add(int64_t a, int64_t b, int64_t factor) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b) * static_cast<uint64_t>(factor));
}
// Returns a + b * factor, clamped to +-kIndexLimit.
inline int64_t saturating_multiply_add(int64_t a, int64_t b, int64_t factor) {
  const Int128 value = a + static_cast<Int128>(b) * factor;
  return static_cast<int64_t>(std::clamp<Int128>(value, -kIndexLimit, kIndexLimit));
}
// Returns a + b * factor; if that is beyond +-kIndexLimit, returns 0 and sets *overflowed.
inline int64_t checked_multiply_add(int64_t a, int64_t b, int64_t factor, bool* overflowed) {
  const Int128 value = a + static_cast<Int128>(b) * factor;
  if (value <= kIndexLimit && value >= -kIndexLimit) return static_cast<int64_t>(value);
  *overflowed = true;
  return 0;
}

// The range of a sum of terms coefficient * atom; a bound beyond +-kIndexLimit is unknown.
class RangeSum {
 public:
  explicit RangeSum(int64_t constant) : low_(constant), high_(constant) {}
  void add(const Interval& atom, int64_t coefficient) {
    const bool positive = coefficient > 0;
    const int64_t low = positive ? atom.min : atom.max, high = positive ? atom.max : atom.min;
    low_known_ = low_known_ && low != (positive ? Interval::kNegInf : Interval::kPosInf);
    high_known_ = high_known_ && high != (positive ? Interval::kPosInf : Interval::kNegInf);
    low_ += static_cast<Int128>(low) * coefficient;
    high_ += static_cast<Int128>(high) * coefficient;
  }
  Interval result() const {
    return {low_known_ && near(low_) ? static_cast<int64_t>(low_) : Interval::kNegInf,
            high_known_ && near(high_) ? static_cast<int64_t>(high_) : Interval::kPosInf};
  }

 private:
  static bool near(Int128 v) { return v > -kIndexLimit && v < kIndexLimit; }
  Int128 low_, high_;
  bool low_known_ = true, high_known_ = true;
};

// Returns the range of floordiv(a, divisor), divisor > 0.
inline Interval floor_div(const Interval& a, int64_t divisor) {
  return {a.min == Interval::kNegInf ? a.min : floor_div(a.min, divisor),
          a.max == Interval::kPosInf ? a.max : floor_div(a.max, divisor)};
}
// Returns floor(value / divisor) if it is the same for all values; divisor > 0.
inline std::optional<int64_t> single_quotient(const Interval& values, int64_t divisor) {
  if (!values.bounded()) return std::nullopt;
  const int64_t low = floor_div(values.min, divisor);
  if (low != floor_div(values.max, divisor)) return std::nullopt;
  return low;
}

enum class AffineKind : uint8_t {
  kVariable,  // a loop variable
  kFloorDiv,  // floordiv(a, c), c > 0
  kFloorMod,
  kMin,
  kMax,
  kEither,  // a or b: a select
  kOpaque,  // a value that nothing is known about
};

// Division properties of an atom that the rules query: kFloorDiv or kFloorMod with the divisor, or
// any other kind.
struct AffineDivision {
  AffineKind kind = AffineKind::kOpaque;
  int64_t divisor = 1;
};

// The rules, for any representation of sums. Self defines
//   start(constant), push(form, atom, coefficient): build a sum, term by term in canonical order;
//   count(form), term(form, i);
//   before(x, y): the order of atoms;
//   multiply_add(a, b, factor): a + b * factor, with the user's overflow behaviour;
//   bounds(atom): its range;
// and, if division is used,
//   division(atom), dividend(atom): whether the atom is a quotient or remainder, and of which sum;
//   divided(kind, sum, divisor, range): a sum of the single atom for a division that no rule simplifies.
// Self may redefine any rule, since the rules call each other through Self.
template <class Self, class Form>
class AffineRules {
 public:
  // Policy. If true, common factors of the divisor and some of the terms are split off; if false,
  // only factors of all terms.
  static constexpr bool kSplitsSomeTerms = true;
  // Whether remainders are divided further: (x % 12) // 4 = (x // 4) % 3, (x % 12) % 4 = x % 4.
  static constexpr bool kDividesRemainders = true;
  // Whether (x // a + k) // b = (x + k * a) // (a * b) is applied for k other than 0, too.
  static constexpr bool kDividesShifted = true;
  // Whether dividends are recombined before they are divided.
  static constexpr bool kRecombinesRests = false;
  // Whether x - (x // c) * c is recombined to x % c, too.
  static constexpr bool kFindsRemainders = false;

  // Returns a + factor * b.
  Form add(const Form& a, const Form& b, int64_t factor = 1) { return self().merge(a, b, factor); }
  // Returns a + factor * value.
  Form plus(Form a, int64_t value, int64_t factor = 1) {
    a.constant = self().multiply_add(a.constant, value, factor);
    return a;
  }
  Form scale(const Form& a, int64_t factor) {
    if (factor == 1) return a;
    Form out = self().start(self().multiply_add(0, a.constant, factor));
    for (size_t i = 0; i < self().count(a); ++i) append_product(out, self().term(a, i), factor);
    return out;
  }

  // Returns an enclosure of the sum's values, computed term by term.
  Interval range(const Form& a) const {
    RangeSum sum(a.constant);
    for (size_t i = 0; i < self().count(a); ++i) {
      const auto& t = self().term(a, i);
      sum.add(self().bounds(t.atom), t.coefficient);
    }
    return sum.result();
  }

  // In a = divisor * multiple + rest, the multiple has the terms that the divisor divides; the rest
  // has all others and a constant in [0, divisor).
  Form multiple_of(const Form& a, int64_t divisor) {
    Form out = self().start(floor_div(a.constant, divisor));
    for (size_t i = 0; i < self().count(a); ++i) {
      const auto& t = self().term(a, i);
      if (t.coefficient % divisor == 0) self().push(out, t.atom, t.coefficient / divisor);
    }
    return out;
  }
  Form rest_of(const Form& a, int64_t divisor) {
    Form out = self().start(floor_mod(a.constant, divisor));
    for (size_t i = 0; i < self().count(a); ++i) {
      const auto& t = self().term(a, i);
      if (t.coefficient % divisor != 0) self().push(out, t.atom, t.coefficient);
    }
    return out;
  }
  // Returns the greatest divisor of g that divides all coefficients.
  int64_t common_factor(const Form& a, int64_t g) const {
    for (size_t i = 0; i < self().count(a); ++i) g = std::gcd(g, self().term(a, i).coefficient);
    return g;
  }

  // Returns floor(a / divisor), divisor > 0:
  //   (16*o + i) // 16 => o + i // 16 => o      if 0 <= i < 16
  //   (4*i + j) // 16 => i // 4                 if 0 <= j < 4
  //   (x // a + k) // b => (x + k * a) // (a * b)
  //   (x % (a * b)) // a => (x // a) % b
  Form floordiv(const Form& a, int64_t divisor) {
    if (divisor == 1) return a;
    if (overflowed(a)) return a;
    const Form quotient = self().multiple_of(a, divisor);
    Form rest = self().floordiv_rest(self().rest_of(a, divisor), divisor);
    if (self().count(quotient) == 0) return self().plus(std::move(rest), quotient.constant);
    return self().add(quotient, rest);
  }
  // Returns a - divisor * floor(a / divisor), divisor > 0:
  //   (16*o + i) % 16 => i % 16 => i       if 0 <= i < 16
  //   (4*i + j) % 16 => 4 * (i % 4) + j    if 0 <= j < 4
  //   (x % (a * b)) % a => x % a
  Form floormod(const Form& a, int64_t divisor) {
    if (overflowed(a)) return a;
    if (divisor == 1) return self().start(0);
    return self().floormod_rest(self().rest_of(a, divisor), divisor);
  }

  Form minimum(const Form& a, const Form& b) {
    const Interval d = self().range_of_difference(a, b);
    if (d.max <= 0) return a;
    if (d.min >= 0) return b;
    return self().extremum(AffineKind::kMin, a, b);
  }
  Form maximum(const Form& a, const Form& b) {
    const Interval d = self().range_of_difference(a, b);
    if (d.min >= 0) return a;
    if (d.max <= 0) return b;
    return self().extremum(AffineKind::kMax, a, b);
  }
  Interval range_of_difference(const Form& a, const Form& b) { return self().range(self().add(a, b, -1)); }

  // Recombines quotients and remainders. The terms may have any common factor, and other terms may
  // be present:
  //   (x // c) * c + x % c => x
  //   ((x // a) % b) * a + x % a => x % (a * b)
  Form recombined(Form a) {
    // Each success removes a quotient or joins two remainders; the limit is only a safeguard.
    for (int round = 0; round < 16 && self().count(a) >= 2 && !overflowed(a); ++round) {
      std::optional<Form> joined = self().recombine_once(a);
      if (!joined) break;
      a = std::move(*joined);
    }
    return a;
  }

 protected:
  Form merge(const Form& a, const Form& b, int64_t factor) {
    const int64_t constant = self().multiply_add(a.constant, b.constant, factor);
    const size_t m = self().count(a), n = self().count(b);
    if (n == 0 || factor == 0) return with_constant(a, constant);
    if (m == 0 && factor == 1) return with_constant(b, constant);
    Form out = self().start(constant);
    size_t i = 0, j = 0;
    while (i < m && j < n) {
      const auto& x = self().term(a, i);
      const auto& y = self().term(b, j);
      if (self().before(x.atom, y.atom)) {
        self().push(out, x.atom, x.coefficient);
        ++i;
      } else if (self().before(y.atom, x.atom)) {
        append_product(out, y, factor);
        ++j;
      } else {
        const int64_t c = self().multiply_add(x.coefficient, y.coefficient, factor);
        if (c != 0) self().push(out, x.atom, c);
        ++i;
        ++j;
      }
    }
    for (; i < m; ++i) {
      const auto& x = self().term(a, i);
      self().push(out, x.atom, x.coefficient);
    }
    for (; j < n; ++j) append_product(out, self().term(b, j), factor);
    return out;
  }

  static Form with_constant(Form a, int64_t constant) {
    a.constant = constant;
    return a;
  }

  // Divides the result of rest_of(), as do the remainder functions below.
  Form floordiv_rest(Form rest, int64_t divisor) {
    if constexpr (Self::kRecombinesRests) {
      const int64_t whole = recombine_rest(rest, divisor);
      return overflowed(rest) ? rest : self().plus(floordiv_recombined(rest, divisor), whole);
    }
    return floordiv_recombined(rest, divisor);
  }
  Form floordiv_recombined(const Form& rest, int64_t divisor) {
    if (self().count(rest) == 0) return self().start(0);
    const Interval values = self().range(rest);
    if (const auto k = single_quotient(values, divisor)) return self().start(*k);
    for (int64_t g = factor_below(rest, divisor, INT64_MAX); g > 1; g = factor_below(rest, divisor, g)) {
      Form multiple, small;
      if (separate(rest, g, &multiple, &small)) return self().floordiv(multiple, divisor / g);
    }
    if (self().count(rest) == 1 && self().term(rest, 0).coefficient == 1) {
      const auto atom = self().term(rest, 0).atom;
      const AffineDivision d = self().division(atom);
      int64_t product = 0;
      if (d.kind == AffineKind::kFloorDiv && (Self::kDividesShifted || rest.constant == 0) &&
          !__builtin_mul_overflow(divisor, d.divisor, &product)) {
        const Form x = self().plus(self().dividend(atom), rest.constant, d.divisor);
        return self().divide_again(x, product);
      }
      if (Self::kDividesRemainders && d.kind == AffineKind::kFloorMod && rest.constant == 0 &&
          d.divisor % divisor == 0)
        return self().floormod(self().floordiv(self().dividend(atom), divisor), d.divisor / divisor);
    }
    return self().divided(AffineKind::kFloorDiv, rest, divisor, values);
  }
  Form floormod_rest(Form rest, int64_t divisor) {
    for (size_t i = 0; Self::kDividesRemainders && i < self().count(rest); ++i) {
      const int64_t coefficient = self().term(rest, i).coefficient;
      const auto atom = self().term(rest, i).atom;
      const AffineDivision d = self().division(atom);
      int64_t period = 0;
      if (d.kind != AffineKind::kFloorMod || __builtin_mul_overflow(coefficient, d.divisor, &period) ||
          period % divisor != 0)
        continue;
      return self().floormod(self().add(without(rest, i, i), self().dividend(atom), coefficient), divisor);
    }
    if constexpr (Self::kRecombinesRests) recombine_rest(rest, divisor);
    if (overflowed(rest) || self().count(rest) == 0) return rest;
    const Interval values = self().range(rest);
    if (const auto k = single_quotient(values, divisor)) return self().plus(std::move(rest), *k, -divisor);
    for (int64_t g = factor_below(rest, divisor, INT64_MAX); g > 1; g = factor_below(rest, divisor, g)) {
      Form multiple, small;
      if (separate(rest, g, &multiple, &small))
        return self().add(small, self().floormod(multiple, divisor / g), g);
    }
    return self().divided(AffineKind::kFloorMod, rest, divisor, values);
  }
  Form divide_again(const Form& dividend, int64_t divisor) { return self().floordiv(dividend, divisor); }
  // Returns the range of rest_of(a, divisor).
  Interval range_of_rest(const Form& a, int64_t divisor) { return self().range(self().rest_of(a, divisor)); }

  std::optional<Form> recombine_once(const Form& sum) {
    for (size_t i = 0; i < self().count(sum); ++i) {
      const int64_t scale = self().term(sum, i).coefficient;
      const auto atom = self().term(sum, i).atom;
      const AffineDivision d = self().division(atom);
      if (Self::kFindsRemainders && d.kind == AffineKind::kFloorDiv && scale % d.divisor == 0 &&
          scale != INT64_MIN) {
        const Form x = self().dividend(atom);
        const int64_t factor = -(scale / d.divisor);
        if (contains(sum, x, factor))
          return self().merge(self().merge(without(sum, i, i), x, -factor), self().floormod(x, d.divisor),
                              factor);
      }
      int64_t step = 0;
      if (d.kind != AffineKind::kFloorMod || __builtin_mul_overflow(scale, d.divisor, &step) ||
          step == INT64_MIN)
        continue;
      const Form x = self().dividend(atom);
      const Form quotient = self().floordiv(x, d.divisor);
      if (overflowed(quotient)) continue;
      if (contains(sum, quotient, step))
        return self().merge(self().merge(without(sum, i, i), quotient, -step), x, scale);
      for (size_t j = 0; j < self().count(sum); ++j) {
        const auto other = self().term(sum, j).atom;
        const AffineDivision outer = self().division(other);
        int64_t product = 0;
        if (self().term(sum, j).coefficient != step || outer.kind != AffineKind::kFloorMod ||
            !self().equal(self().dividend(other), quotient) ||
            __builtin_mul_overflow(d.divisor, outer.divisor, &product))
          continue;
        const Form joined = self().floormod(x, product);
        if (overflowed(joined)) continue;
        return self().merge(without(sum, i, j), joined, scale);
      }
    }
    return std::nullopt;
  }

  // Returns the sum without terms i and j.
  Form without(const Form& a, size_t i, size_t j) {
    Form out = self().start(a.constant);
    for (size_t k = 0; k < self().count(a); ++k) {
      const auto& t = self().term(a, k);
      if (k != i && k != j) self().push(out, t.atom, t.coefficient);
    }
    return out;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  static bool overflowed(const Form& a) {
    if constexpr (requires { a.bad; }) return a.bad;
    return false;
  }

  template <class Term>
  void append_product(Form& out, const Term& t, int64_t factor) {
    const int64_t c = self().multiply_add(0, t.coefficient, factor);
    if (c != 0) self().push(out, t.atom, c);
  }

  // Recombines the rest and reduces its constant modulo the divisor; returns the quotient of the
  // constant.
  int64_t recombine_rest(Form& rest, int64_t divisor) {
    rest = self().recombined(std::move(rest));
    const int64_t whole = floor_div(rest.constant, divisor);
    rest.constant = floor_mod(rest.constant, divisor);
    return whole;
  }

  // Returns the largest factor below `limit` that the divisor has in common with a term; at most 1
  // if there is none.
  int64_t factor_below(const Form& a, int64_t divisor, int64_t limit) const {
    if (!Self::kSplitsSomeTerms) {
      const int64_t g = common_factor(a, divisor);
      return g < limit ? g : 1;
    }
    int64_t largest = 1;
    for (size_t i = 0; i < self().count(a); ++i) {
      const int64_t g = std::gcd(self().term(a, i).coefficient, divisor);
      if (g < limit && g > largest) largest = g;
    }
    return largest;
  }

  // Finds a = g * multiple + small with 0 <= small < g for all values, where small has no terms
  // that g divides; returns false if there is no such pair.
  bool separate(const Form& a, int64_t g, Form* multiple, Form* small) {
    const auto k = single_quotient(self().range_of_rest(a, g), g);
    if (!k) return false;
    *multiple = self().multiple_of(a, g);
    *multiple = self().plus(std::move(*multiple), *k);
    *small = self().plus(self().rest_of(a, g), *k, -g);
    return true;
  }

  // Returns whether the sum contains all terms of scale * part, ignoring its constant.
  bool contains(const Form& sum, const Form& part, int64_t scale) const {
    if (overflowed(part)) return false;
    for (size_t i = 0; i < self().count(part); ++i) {
      const auto& t = self().term(part, i);
      int64_t wanted = 0;
      if (__builtin_mul_overflow(t.coefficient, scale, &wanted)) return false;
      bool found = false;
      for (size_t k = 0; k < self().count(sum) && !found; ++k) {
        const auto& other = self().term(sum, k);
        found = other.coefficient == wanted && self().same(other.atom, t.atom);
      }
      if (!found) return false;
    }
    return self().count(part) > 0;
  }
};

// Definition of an atom in a table. Users add further properties.
template <class Form>
struct AffineAtom {
  AffineKind kind = AffineKind::kVariable;
  Form a, b;      // operands
  int64_t c = 1;  // divisor
  Interval range;
};

// Atoms are numbered in a table; equal quotients, remainders, minima and maxima are one atom.
template <class Self, class Form, class Atom>
class InternedAffine : public AffineRules<Self, Form> {
 public:
  const Atom& atom(const AffineTerm<int32_t>& t) const { return atoms_[t.atom]; }

  static bool before(int32_t x, int32_t y) { return x < y; }
  static bool same(int32_t x, int32_t y) { return x == y; }
  const Interval& bounds(int32_t a) const { return at(a).range; }
  AffineDivision division(int32_t a) const { return {at(a).kind, at(a).c}; }
  // Returns a copy, because making atoms may move the table.
  Form dividend(int32_t a) const { return at(a).a; }
  Form divided(AffineKind kind, const Form& rest, int64_t divisor, const Interval& values) {
    const bool quotient = kind == AffineKind::kFloorDiv;
    return self().intern(kind, rest, Form(), divisor,
                         quotient ? floor_div(values, divisor) : Interval{0, divisor - 1});
  }
  Form extremum(AffineKind kind, const Form& a, const Form& b) {
    const Interval x = self().range(a), y = self().range(b);
    const bool least = kind == AffineKind::kMin;
    return self().intern(kind, a, b, 1,
                         least ? Interval{std::min(x.min, y.min), std::min(x.max, y.max)}
                               : Interval{std::max(x.min, y.min), std::max(x.max, y.max)});
  }

 protected:
  Atom& at(int32_t a) { return atoms_[a]; }
  const Atom& at(int32_t a) const { return atoms_[a]; }
  Form single(size_t atom) {
    Form out = self().start(0);
    self().push(out, atom, 1);
    return out;
  }
  Form of_atom(Atom atom) {
    atoms_.push_back(std::move(atom));
    return single(atoms_.size() - 1);
  }
  // Returns the sum of the single atom with these operands. A new atom gets this range.
  Form intern(AffineKind kind, const Form& a, const Form& b, int64_t c, const Interval& range) {
    for (size_t k = atoms_.size(); k-- > 0;) {
      const Atom& atom = atoms_[k];
      if (atom.kind == kind && atom.c == c && self().equal(atom.a, a) && self().equal(atom.b, b))
        return self().known(k, range);
    }
    Atom atom;
    atom.kind = kind;
    atom.a = a;
    atom.b = b;
    atom.c = c;
    atom.range = range;
    self().describe(atom);
    return of_atom(std::move(atom));
  }
  // Lets a user record further properties of a new atom.
  static void describe(Atom&) {}
  // Called when an existing atom is made again; the range is the one that its operands have now.
  Form known(size_t atom, const Interval&) { return single(atom); }

  std::vector<Atom> atoms_;

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
};

// Sums as values; their arithmetic is modulo 2^64.
template <class Self, class Atom>
class AffineValues : public InternedAffine<Self, AffineSum<int32_t>, Atom> {
 public:
  using Form = AffineSum<int32_t>;
  static Form start(int64_t constant) { return constant; }
  static void push(Form& a, int32_t atom, int64_t coefficient) { a.terms.push_back({atom, coefficient}); }
  static size_t count(const Form& a) { return a.terms.size(); }
  static const Form::Term& term(const Form& a, size_t i) { return a.terms[i]; }
  static bool equal(const Form& a, const Form& b) { return a == b; }
  static int64_t multiply_add(int64_t a, int64_t b, int64_t factor) {
    return wrapping_multiply_add(a, b, factor);
  }
};
AffineSum<int32_t> operator+(const AffineSum<int32_t>& a, const AffineSum<int32_t>& b);
AffineSum<int32_t> operator-(const AffineSum<int32_t>& a, const AffineSum<int32_t>& b);
AffineSum<int32_t> operator*(const AffineSum<int32_t>& a, int64_t factor);

// Stores the terms of all sums in one table. A sum is valid until clear(), or until rollback() to a
// mark that was taken before it.
template <class Self, class Atom>
class AffineArena : public InternedAffine<Self, AffineSlice, Atom> {
 public:
  using Term = AffineTerm<int32_t>;

  void clear() {
    terms_.clear();
    this->atoms_.clear();
  }
  std::pair<size_t, size_t> mark() const { return {terms_.size(), this->atoms_.size()}; }
  void rollback(std::pair<size_t, size_t> mark) {
    terms_.resize(mark.first);
    this->atoms_.resize(mark.second);
  }

  static AffineSlice constant(int64_t value) { return {value, 0, 0}; }
  std::span<const Term> terms(const AffineSlice& a) const { return {terms_.data() + a.begin, a.count}; }
  bool equal(const AffineSlice& a, const AffineSlice& b) const {
    if (a.constant != b.constant || a.count != b.count) return false;
    for (uint32_t i = 0; i < a.count; ++i) {
      if (terms_[a.begin + i] != terms_[b.begin + i]) return false;
    }
    return true;
  }

  AffineSlice start(int64_t constant) const { return {constant, static_cast<uint32_t>(terms_.size()), 0}; }
  // Appends a term to the sum that was started last.
  void push(AffineSlice& a, int32_t atom, int64_t coefficient) {
    terms_.push_back({atom, coefficient});
    ++a.count;
  }
  static size_t count(const AffineSlice& a) { return a.count; }
  // Returns a copy, because push() may move the terms.
  Term term(const AffineSlice& a, size_t i) const { return terms_[a.begin + i]; }

 protected:
  std::vector<Term> terms_;
};

}  // namespace tensorsmith::ir
