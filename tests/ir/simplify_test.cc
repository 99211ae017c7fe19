// The simplifier and the bounds: particular rewrites, and preservation of values and soundness on
// random expressions.
#include "ir/simplify.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ir/analysis.h"
#include "ir/linear.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "support/random_expr.h"

namespace tensorsmith::ir::simplify_test {
namespace {

// True only if the condition holds for every assignment in range.
bool can_prove(const Expr& condition, const VarBounds& vars) {
  return is_int_value(simplify(condition, vars), 1);
}

struct Index {
  Var o{"o"}, i{"i"}, j{"j"}, x{"x"};
  VarBounds bounds{{o.get(), {0, 6}}, {i.get(), {0, 15}}, {j.get(), {0, 3}}};

  void same(const Expr& e, const Expr& expected) const {
    const Expr simple = simplify(e, bounds);
    EXPECT_TRUE(structural_equal(simple, simplify(expected, bounds)));
    EXPECT_TRUE(structural_equal(simple, expected));
  }
  bool proves(const Expr& c) const { return can_prove(c, bounds); }
};

TEST(Simplify, SplitIndexArithmetic) {
  const Index t;
  const Expr o = t.o;
  const Expr i = t.i;
  const Expr j = t.j;
  const Expr x = t.x;
  t.same(floordiv(o * 16 + i, 16), o);
  t.same(floormod(o * 16 + i, 16), i);
  t.same(floordiv(i + o * 16 + 32, 16), o + 2);
  t.same(floormod(o * 16 + i + 32, 16), i);
  t.same(floordiv(x * 4 + j, 8), floordiv(x, 2));
  t.same(floormod(x * 4 + j, 8), floormod(x, 2) * 4 + j);
  t.same(floordiv(floordiv(x, 3), 5), floordiv(x, 15));
  t.same(floordiv(floormod(x, 12), 4), floormod(floordiv(x, 4), 3));
  t.same(floormod(floormod(x, 12), 4), floormod(x, 4));
  t.same(floordiv(x, 7) * 7 + floormod(x, 7), x);
  t.same(floormod(x, 7) * 2 + i + floordiv(x, 7) * 14, x * 2 + i);
  t.same(x - floordiv(x, 4) * 4, floormod(x, 4));
  t.same(floordiv(x, 12) * 12 + floormod(floordiv(x, 4), 3) * 4 + floormod(x, 4), x);
  t.same((i + j) - i, j);
  t.same(i * 4 + j - (j + i * 4), 0);
  t.same(floordiv(x * 2 + 1, 2), x);
  t.same(floormod(i, 16), i);
  t.same(floormod(i + 16, 16), i);
  t.same(floordiv(x, -4), floordiv(-x, 4));
  t.same(binary(BinaryOp::kDiv, i, 16), 0);
  t.same(floordiv(x, 0), 0);
  t.same(floormod(x, 0), 0);
  t.same(min(i, 15), i);
  t.same(max(i, 3) * 0 + max(min(i, 10), 0), min(i, 10));
  t.same(min(x + 3, x + 5), x + 3);
  t.same(cast(DType::kI64, cast(DType::kI32, i)), i);
}

TEST(Simplify, Conditions) {
  const Index t;
  const Expr o = t.o;
  const Expr i = t.i;
  const Expr x = t.x;
  EXPECT_TRUE(t.proves(o * 16 + i < 112));
  EXPECT_FALSE(t.proves(o * 16 + i < 111));
  EXPECT_TRUE(t.proves(!(o * 16 + i >= 112)));
  EXPECT_TRUE(t.proves(x + 1 > x));
  EXPECT_TRUE(t.proves(floormod(x, 5) < 5));
  EXPECT_TRUE(t.proves(x * 4 + t.j < x * 4 + 4));
  EXPECT_TRUE(t.proves(min(o * 16 + 16, 100) - o * 16 <= 16));
  EXPECT_TRUE(t.proves(x != x + 1));
  EXPECT_TRUE(t.proves(x * 2 != 5));
  t.same(o * 16 + i < 48, o < 3);
  t.same(floordiv(x, 4) < 3, x < 12);
  t.same(floordiv(x, 4) > 3, Expr(15) < x);
  t.same(x * 4 < 10, x < 3);
  t.same((o < 5) && (o < 6), o < 5);
  t.same((o < 5) || (o < 4), o < 5);
  t.same((o < 5) && (o > 7), bool_imm(false));
  t.same(select(x < 5, select(x < 7, i, o), o), select(x < 5, i, o));
  t.same(select(x == 3, x, i), select(x == 3, Expr(3), i));
  t.same(select(o < 7, i, o), i);
}

TEST(Simplify, FloatsKeepTheirRounding) {
  const Var v("v");
  const Expr x = cast(DType::kF32, v);
  const auto f = [](double c) { return float_imm(DType::kF32, c); };
  EXPECT_TRUE(simplify(x * f(1)).same_as(x));
  EXPECT_TRUE(simplify(x - f(0)).same_as(x));
  const Expr keep = x + f(0);  // -0 + 0 = 0
  EXPECT_TRUE(simplify(keep).same_as(keep));
  EXPECT_EQ(as<FloatImm>(simplify(f(0.1) + f(0.2)))->value, static_cast<double>(0.1f + 0.2f));
  const Expr sum = (x + f(1)) - f(1);
  EXPECT_TRUE(simplify(sum).same_as(sum));
}

TEST(Simplify, OtherIntegersWrap) {
  const Var v("v", DType::kU8);
  const Expr x = v;
  const auto u8 = [](int64_t c) { return int_imm(DType::kU8, c); };
  EXPECT_TRUE(structural_equal(simplify((x + u8(200)) + u8(100)), x + u8(44)));
  EXPECT_FALSE(can_prove(x + u8(1) > x, {}));
  EXPECT_TRUE(can_prove(x <= u8(255), {}));
  EXPECT_EQ(bounds_of(x + u8(1), {}), (Interval{0, 255}));
  EXPECT_EQ(bounds_of(x + u8(1), {{v.get(), {3, 9}}}), (Interval{4, 10}));
}

TEST(Simplify, AbsurdConstantsAreLeftAlone) {
  const Var v("v");
  const Expr x = v;
  const Expr big = INT64_MAX;
  for (const Expr& e :
       {x * big + x * big, x * Expr(INT64_MIN) - 1, floordiv(x * 3 + big, Expr(INT64_MIN)),
        floormod(x, 4) + floormod(x * Expr(int64_t{1} << 62) + x * Expr(int64_t{1} << 62), 8) * 4,
        floormod(x - big - big, big), min(x * big, x * big + big), -(x * Expr(INT64_MIN)),
        cast(DType::kI64, x * big < x * big + big + big), cast(DType::kI64, x + big + 1 == x)}) {
    const Expr simple = simplify(e);
    EXPECT_TRUE(structural_equal(simplify(simple), simple));
    bounds_of(e, {{v.get(), {INT64_MIN + 1, INT64_MAX - 1}}});
  }
}

TEST(Bounds, AreTightForCorrelatedTerms) {
  const Index t;
  const Expr i = t.i;
  const Expr j = t.j;
  EXPECT_EQ(bounds_of((i * 4 + j) - i * 4, t.bounds), (Interval{0, 3}));
  EXPECT_EQ(bounds_of(i * 4 + j, t.bounds), (Interval{0, 63}));
  EXPECT_EQ(bounds_of(Expr(t.x) - t.x + i, t.bounds), (Interval{0, 15}));
  EXPECT_EQ(bounds_of(floordiv(i + 3, 4), t.bounds), (Interval{0, 4}));
  EXPECT_EQ(bounds_of(min(Expr(t.x) * 4 + 4, 50) - Expr(t.x) * 4, {{t.x.get(), {0, 12}}}), (Interval{2, 4}));
  EXPECT_EQ(bounds_of(t.x, t.bounds), Interval::everything());
  // Related divisions.
  EXPECT_EQ(bounds_of(floordiv(Expr(t.x) * 2 + j, 5) - floordiv(Expr(t.x) * 2, 5), t.bounds),
            (Interval{0, 1}));
  EXPECT_EQ(bounds_of(floordiv(Expr(t.x) * 10 + i, 8) - floordiv(Expr(t.x) * 5, 4), t.bounds),
            (Interval{0, 2}));
  EXPECT_EQ(bounds_of(i < 16, t.bounds), Interval::point(1));
  EXPECT_EQ(bounds_of(i < 15, t.bounds), (Interval{0, 1}));
  const auto form = as_affine((i + j * 2 - 3) * 4 + i);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->constant, -12);
  EXPECT_EQ(form->terms, (std::vector<AffineTerm<Var>>{{t.i, 5}, {t.j, 8}}));
  EXPECT_FALSE(as_affine(floordiv(i, 4)).has_value());
  EXPECT_FALSE(as_affine(i * j).has_value());
}

bool same_value(const Scalar& a, const Scalar& b) {
  if (a.dtype != b.dtype) return false;
  if (!is_float(a.dtype)) return a.i == b.i;
  return std::bit_cast<uint64_t>(a.f) == std::bit_cast<uint64_t>(b.f) || (std::isnan(a.f) && std::isnan(b.f));
}

class RandomExpressions : public ::testing::TestWithParam<DType> {};

TEST_P(RandomExpressions, ValueIsKeptAndBoundsHold) {
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    test::ExprGenerator gen(seed, 4);
    const Expr e = gen.value(GetParam(), 1 + static_cast<int>(seed % 7));
    const Expr simple = simplify(e, gen.bounds);
    ASSERT_EQ(simple.dtype(), e.dtype());
    ASSERT_TRUE(simplify(simple, gen.bounds).same_as(simple))
        << "seed " << seed << ": " << print(simple) << " => " << print(simplify(simple, gen.bounds));
    const bool integer = !is_float(GetParam());
    const Interval range = integer ? bounds_of(e, gen.bounds) : Interval{};
    for (int n = 0; n < 20; ++n) {
      const test::Assignment values = gen.assignment();
      bool overflow = false;
      const Scalar before = test::evaluate_expr(e, values, &overflow);
      if (overflow) continue;
      const Scalar after = test::evaluate_expr(simple, values);
      ASSERT_TRUE(same_value(before, after)) << "seed " << seed << ": " << before.i << " became " << after.i;
      if (integer && GetParam() != DType::kU64) {
        ASSERT_TRUE(before.i >= range.min && before.i <= range.max)
            << "seed " << seed << ": " << before.i << " outside [" << range.min << ", " << range.max << "]";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, RandomExpressions,
                         ::testing::Values(DType::kI64, DType::kBool, DType::kI32, DType::kU8, DType::kF32,
                                           DType::kF16),
                         [](const auto& test_case) { return std::string(to_string(test_case.param)); });

}  // namespace
}  // namespace tensorsmith::ir::simplify_test
