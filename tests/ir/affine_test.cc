// The affine algebra compared with direct evaluation: random expressions, and every rule with all
// small operands.
#include "ir/affine.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"

namespace tensorsmith::ir::affine_test {
namespace {

int64_t plain_div(int64_t a, int64_t b) {
  int64_t q = 0;
  while (q * b > a) --q;
  while ((q + 1) * b <= a) ++q;
  return q;
}
int64_t plain_mod(int64_t a, int64_t b) { return a - plain_div(a, b) * b; }

// Each policy with each representation of sums.
class Arena : public AffineArena<Arena, AffineAtom<AffineSlice>> {
 public:
  using Form = AffineSlice;
  Form variable(Interval range) {
    AffineAtom<Form> atom;
    atom.range = range;
    return of_atom(atom);
  }
  int64_t multiply_add(int64_t a, int64_t b, int64_t factor) {
    return checked_multiply_add(a, b, factor, &overflowed);
  }
  const AffineAtom<Form>& atom_at(int32_t i) const { return at(i); }
  bool overflowed = false;
};
class CommonFactors : public AffineArena<CommonFactors, AffineAtom<AffineSlice>> {
 public:
  using Form = AffineSlice;
  static constexpr bool kSplitsSomeTerms = false;
  static constexpr bool kDividesRemainders = false;
  static constexpr bool kDividesShifted = false;
  Form add(const Form& a, const Form& b, int64_t factor = 1) { return recombined(merge(a, b, factor)); }
  Form variable(Interval range) {
    AffineAtom<Form> atom;
    atom.range = range;
    return of_atom(atom);
  }
  static int64_t multiply_add(int64_t a, int64_t b, int64_t factor) {
    return saturating_multiply_add(a, b, factor);
  }
  const AffineAtom<Form>& atom_at(int32_t i) const { return at(i); }
};
class Values : public AffineValues<Values, AffineAtom<AffineSum<int32_t>>> {
 public:
  static constexpr bool kRecombinesRests = true;
  static constexpr bool kFindsRemainders = true;
  Form variable(Interval range) {
    AffineAtom<Form> atom;
    atom.range = range;
    return of_atom(atom);
  }
  const AffineAtom<Form>& atom_at(int32_t i) const { return at(i); }
};

template <class Algebra>
struct AffineTest : ::testing::Test {
  using Form = typename Algebra::Form;
  Algebra algebra;

  // Variables are the first atoms.
  int64_t evaluate(const Form& a, const std::vector<int64_t>& variables) const {
    int64_t sum = a.constant;
    for (size_t i = 0; i < Algebra::count(a); ++i) {
      const auto t = algebra.term(a, i);
      const auto& atom = algebra.atom_at(t.atom);
      int64_t value = 0;
      switch (atom.kind) {
        case AffineKind::kVariable:
          value = variables[static_cast<size_t>(t.atom)];
          break;
        case AffineKind::kFloorDiv:
          value = plain_div(evaluate(atom.a, variables), atom.c);
          break;
        case AffineKind::kFloorMod:
          value = plain_mod(evaluate(atom.a, variables), atom.c);
          break;
        case AffineKind::kMin:
          value = std::min(evaluate(atom.a, variables), evaluate(atom.b, variables));
          break;
        case AffineKind::kMax:
          value = std::max(evaluate(atom.a, variables), evaluate(atom.b, variables));
          break;
        case AffineKind::kEither:
        case AffineKind::kOpaque:
          ADD_FAILURE() << "no rule makes such an atom";
      }
      EXPECT_GE(value, atom.range.min);
      EXPECT_LE(value, atom.range.max);
      sum += t.coefficient * value;
    }
    return sum;
  }

  void expect_canonical(const Form& a) const {
    for (size_t i = 0; i < Algebra::count(a); ++i) {
      EXPECT_NE(algebra.term(a, i).coefficient, 0);
      if (i > 0) {
        EXPECT_LT(algebra.term(a, i - 1).atom, algebra.term(a, i).atom);
      }
    }
  }

  bool same(const Form& a, const Form& b) { return algebra.equal(a, b); }

  // Checks that form equals expected(values) for all values of variables in [0, extent).
  void expect_everywhere(const Form& form, const std::vector<int64_t>& extents,
                         const std::function<int64_t(const std::vector<int64_t>&)>& expected) {
    expect_canonical(form);
    const Interval range = algebra.range(form);
    std::vector<int64_t> values(extents.size(), 0);
    while (true) {
      const int64_t wanted = expected(values);
      ASSERT_EQ(evaluate(form, values), wanted);
      ASSERT_GE(wanted, range.min);
      ASSERT_LE(wanted, range.max);
      size_t k = 0;
      while (k < values.size() && ++values[k] == extents[k]) values[k++] = 0;
      if (k == values.size()) return;
    }
  }
};

using Algebras = ::testing::Types<Arena, CommonFactors, Values>;
TYPED_TEST_SUITE(AffineTest, Algebras);

TYPED_TEST(AffineTest, RandomExpressionsAgreeWithPlainEvaluation) {
  struct Sample {
    typename TypeParam::Form form;
    std::vector<int64_t> values;  // by assignment
  };
  constexpr size_t kAssignments = 24;
  for (uint64_t seed = 1; seed <= 20000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    this->algebra = TypeParam();
    Rng rng(seed);
    std::vector<Sample> variables;
    std::vector<std::vector<int64_t>> assignments(kAssignments);
    const int64_t count = rng.uniform_int(1, 4);
    for (int64_t v = 0; v < count; ++v) {
      const int64_t low = rng.bernoulli(0.7) ? 0 : rng.uniform_int(-20, 20);
      const int64_t high = low + rng.uniform_int(0, rng.bernoulli(0.5) ? 7 : 100);
      Sample sample{this->algebra.variable({low, high}), {}};
      for (auto& assignment : assignments) {
        assignment.push_back(rng.uniform_int(low, high));
        sample.values.push_back(assignment.back());
      }
      variables.push_back(sample);
    }
    const auto check = [&](const Sample& sample) {
      this->expect_canonical(sample.form);
      const Interval range = this->algebra.range(sample.form);
      for (size_t k = 0; k < kAssignments; ++k) {
        ASSERT_EQ(this->evaluate(sample.form, assignments[k]), sample.values[k]);
        ASSERT_GE(sample.values[k], range.min);
        ASSERT_LE(sample.values[k], range.max);
      }
    };
    const auto map = [](const Sample& a, const Sample& b, const auto& form, auto&& fn) {
      Sample out{form, {}};
      for (size_t k = 0; k < kAssignments; ++k) out.values.push_back(fn(a.values[k], b.values[k]));
      return out;
    };
    const std::function<Sample(int)> make = [&](int depth) -> Sample {
      if (depth == 0 || rng.bernoulli(0.15)) {
        if (!rng.bernoulli(0.2)) return variables[rng.below(variables.size())];
        const int64_t c = rng.uniform_int(-9, 9);
        return {this->algebra.start(c), std::vector<int64_t>(kAssignments, c)};
      }
      const Sample a = make(depth - 1);
      const Sample b = make(depth - 1);
      const int64_t c = rng.bernoulli(0.5) ? int64_t{1} << rng.below(5) : rng.uniform_int(1, 13);
      switch (rng.below(6)) {
        case 0: {
          const int64_t factor = rng.uniform_int(-6, 6);
          return map(a, b, this->algebra.add(a.form, b.form, factor),
                     [&](int64_t x, int64_t y) { return x + factor * y; });
        }
        case 1:
          return map(a, b, this->algebra.scale(a.form, c), [&](int64_t x, int64_t) { return c * x; });
        case 2:
          return map(a, b, this->algebra.floordiv(a.form, c),
                     [&](int64_t x, int64_t) { return plain_div(x, c); });
        case 3:
          return map(a, b, this->algebra.floormod(a.form, c),
                     [&](int64_t x, int64_t) { return plain_mod(x, c); });
        case 4:
          return map(a, b, this->algebra.minimum(a.form, b.form),
                     [](int64_t x, int64_t y) { return std::min(x, y); });
        default:
          return map(a, b, this->algebra.maximum(a.form, b.form),
                     [](int64_t x, int64_t y) { return std::max(x, y); });
      }
    };
    const Sample sample = make(5);
    check(sample);
    Sample again = sample;
    again.form = this->algebra.recombined(sample.form);
    check(again);
    if (this->HasFatalFailure() || this->HasNonfatalFailure()) return;
  }
}

// (p * x + q * y + k) // c and its remainder, for all small p, q, k, c.
TYPED_TEST(AffineTest, SumsAreDividedTermByTerm) {
  const std::vector<int64_t> extents = {5, 4};
  for (int64_t p : {-6, -4, -1, 1, 2, 3, 4, 6, 8, 12}) {
    for (int64_t q : {-3, -2, 0, 1, 2, 3, 6}) {
      for (int64_t k : {-13, -4, -1, 0, 1, 2, 3, 7}) {
        for (int64_t c : {1, 2, 3, 4, 6, 8, 12}) {
          SCOPED_TRACE(::testing::Message() << p << " x + " << q << " y + " << k << " by " << c);
          this->algebra = TypeParam();
          const auto x = this->algebra.variable({0, extents[0] - 1});
          const auto y = this->algebra.variable({0, extents[1] - 1});
          auto sum = this->algebra.add(this->algebra.scale(x, p), y, q);
          sum.constant += k;
          const auto value = [&](const std::vector<int64_t>& v) { return p * v[0] + q * v[1] + k; };
          this->expect_everywhere(this->algebra.floordiv(sum, c), extents,
                                  [&](const auto& v) { return plain_div(value(v), c); });
          this->expect_everywhere(this->algebra.floormod(sum, c), extents,
                                  [&](const auto& v) { return plain_mod(value(v), c); });
          if (this->HasFatalFailure()) return;
        }
      }
    }
  }
}

// (x // a + k) // b, (x % a) // b, (x // a) % b and (x % a) % b, with a factor and with additional
// terms.
TYPED_TEST(AffineTest, QuotientsAndRemaindersAreDividedAgain) {
  const std::vector<int64_t> extents = {41};
  for (int64_t a = 2; a <= 12; ++a) {
    for (int64_t b = 2; b <= 8; ++b) {
      for (int64_t k = -3; k <= 3; ++k) {
        SCOPED_TRACE(::testing::Message() << "a " << a << ", b " << b << ", k " << k);
        this->algebra = TypeParam();
        const auto x = this->algebra.variable({0, extents[0] - 1});
        auto quotient = this->algebra.floordiv(x, a);
        quotient.constant += k;
        auto rest = this->algebra.floormod(x, a);
        rest.constant += k;
        const auto mixed = this->algebra.add(x, rest, b);
        const auto q = [&](int64_t v) { return plain_div(v, a) + k; };
        const auto r = [&](int64_t v) { return plain_mod(v, a) + k; };
        const auto m = [&](int64_t v) { return v + b * r(v); };
        this->expect_everywhere(this->algebra.floordiv(quotient, b), extents,
                                [&](const auto& v) { return plain_div(q(v[0]), b); });
        this->expect_everywhere(this->algebra.floormod(quotient, b), extents,
                                [&](const auto& v) { return plain_mod(q(v[0]), b); });
        this->expect_everywhere(this->algebra.floordiv(rest, b), extents,
                                [&](const auto& v) { return plain_div(r(v[0]), b); });
        this->expect_everywhere(this->algebra.floormod(rest, b), extents,
                                [&](const auto& v) { return plain_mod(r(v[0]), b); });
        this->expect_everywhere(this->algebra.floormod(mixed, a), extents,
                                [&](const auto& v) { return plain_mod(m(v[0]), a); });
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

// s * (x // c) + t * (x % c) + u * y, also with ((x // c) % d) as the quotient.
TYPED_TEST(AffineTest, PartsAreRecombined) {
  const std::vector<int64_t> extents = {37, 3};
  for (int64_t c = 2; c <= 6; ++c) {
    for (int64_t d = 2; d <= 4; ++d) {
      for (int64_t t : {-2, 1, 3}) {
        for (int64_t s : {t, t * c, t * c + 1, -t * c}) {
          SCOPED_TRACE(::testing::Message() << "c " << c << ", d " << d << ", t " << t << ", s " << s);
          this->algebra = TypeParam();
          auto& sums = this->algebra;
          const auto x = sums.variable({0, extents[0] - 1});
          const auto y = sums.variable({0, extents[1] - 1});
          const auto quotient = sums.floordiv(x, c);
          const auto others = sums.add(sums.scale(sums.floormod(x, c), t), y, 5);
          const auto whole = sums.recombined(sums.add(others, quotient, s));
          const auto part = sums.recombined(sums.add(others, sums.floormod(quotient, d), s));
          const auto rest = [&](const auto& v) { return t * plain_mod(v[0], c) + 5 * v[1]; };
          this->expect_everywhere(whole, extents,
                                  [&](const auto& v) { return s * plain_div(v[0], c) + rest(v); });
          this->expect_everywhere(
              part, extents, [&](const auto& v) { return s * plain_mod(plain_div(v[0], c), d) + rest(v); });
          if (s == t * c) {
            EXPECT_TRUE(this->same(whole, sums.add(sums.scale(x, t), y, 5)));
            EXPECT_TRUE(this->same(part, sums.add(sums.scale(sums.floormod(x, c * d), t), y, 5)));
          }
          if (this->HasFatalFailure()) return;
        }
      }
    }
  }
}

TYPED_TEST(AffineTest, TheRulesOfTheHeader) {
  auto& sums = this->algebra;
  const auto o = sums.variable({0, 6});
  const auto i = sums.variable({0, 15});
  const auto j = sums.variable({0, 3});
  const auto tile = sums.add(i, o, 16);
  EXPECT_TRUE(this->same(sums.floordiv(tile, 16), o));
  EXPECT_TRUE(this->same(sums.floormod(tile, 16), i));
  const auto four = sums.add(j, i, 4);
  const auto half = sums.floordiv(i, 2);
  if (TypeParam::kSplitsSomeTerms) {
    EXPECT_TRUE(this->same(sums.floordiv(four, 8), half));
    EXPECT_TRUE(this->same(sums.floormod(four, 8), sums.add(j, sums.floormod(i, 2), 4)));
  }
  EXPECT_TRUE(this->same(sums.floordiv(sums.scale(four, 2), 4), sums.floordiv(four, 2)));
  EXPECT_TRUE(this->same(sums.floordiv(half, 3), sums.floordiv(i, 6)));
  if (TypeParam::kDividesRemainders) {
    EXPECT_TRUE(this->same(sums.floormod(sums.floormod(i, 12), 4), sums.floormod(i, 4)));
    EXPECT_TRUE(this->same(sums.floordiv(sums.floormod(i, 12), 4), sums.floormod(sums.floordiv(i, 4), 3)));
  }
  if (TypeParam::kFindsRemainders) {
    EXPECT_TRUE(this->same(sums.recombined(sums.add(i, sums.floordiv(i, 5), -5)), sums.floormod(i, 5)));
  }
  EXPECT_TRUE(this->same(sums.minimum(j, sums.add(j, o)), j));
  EXPECT_TRUE(this->same(sums.maximum(sums.start(3), j), sums.start(3)));
  // Equal atoms are the same atom.
  EXPECT_TRUE(this->same(sums.minimum(i, o), sums.minimum(i, o)));
  EXPECT_TRUE(this->same(sums.floordiv(tile, 5), sums.floordiv(tile, 5)));
}

TEST(Affine, OverflowIsWhatThePolicySays) {
  constexpr int64_t kBig = int64_t{1} << 40;
  EXPECT_EQ(saturating_multiply_add(7, kBig, kBig), kIndexLimit);
  EXPECT_EQ(saturating_multiply_add(7, kBig, -kBig), -kIndexLimit);
  EXPECT_EQ(saturating_multiply_add(7, 6, -2), -5);
  bool overflowed = false;
  EXPECT_EQ(checked_multiply_add(7, 6, -2, &overflowed), -5);
  EXPECT_EQ(checked_multiply_add(0, kIndexLimit, -1, &overflowed), -kIndexLimit);
  EXPECT_FALSE(overflowed);
  EXPECT_EQ(checked_multiply_add(1, kIndexLimit, 1, &overflowed), 0);
  EXPECT_TRUE(overflowed);
  EXPECT_EQ(wrapping_multiply_add(3, INT64_MIN, 2), 3);
  EXPECT_EQ(wrapping_multiply_add(INT64_MAX, 1, 1), INT64_MIN);
}

TEST(Affine, UnknownEndsStayUnknown) {
  RangeSum sum(-5);
  sum.add({0, Interval::kPosInf}, 2);
  sum.add({-1, 4}, -3);
  EXPECT_EQ(sum.result(), (Interval{-17, Interval::kPosInf}));
  sum.add({3, Interval::kPosInf}, -1);
  EXPECT_EQ(sum.result(), (Interval{Interval::kNegInf, Interval::kPosInf}));
  RangeSum far(0);
  far.add({-1, int64_t{1} << 50}, int64_t{1} << 20);
  EXPECT_EQ(far.result(), (Interval{-(int64_t{1} << 20), Interval::kPosInf}));
}

}  // namespace
}  // namespace tensorsmith::ir::affine_test
