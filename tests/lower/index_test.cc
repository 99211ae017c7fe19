// The index arithmetic of lowering compared with direct evaluation.
#include "lower/index.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "ir/text.h"
#include "support/random_expr.h"

namespace tensorsmith::lower::index_test {
namespace {

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

// An index with the values of the function that it represents.
struct Sample {
  Index index;
  std::vector<int64_t> values;  // by assignment
};

struct Generator {
  Rng rng;
  IndexArena arena;
  std::vector<ir::Var> vars;
  std::vector<Sample> loops;
  std::vector<test::Assignment> assignments;

  explicit Generator(uint64_t seed) : rng(seed) {
    const int count = static_cast<int>(rng.uniform_int(1, 4));
    assignments.resize(40);
    for (int v = 0; v < count; ++v) {
      vars.emplace_back("v" + std::to_string(v));
      const int64_t extent = rng.uniform_int(1, 12);
      Sample s{arena.loop(vars.back(), extent), {}};
      for (auto& a : assignments) {
        s.values.push_back(rng.uniform_int(0, extent - 1));
        a[vars.back().get()] = s.values.back();
      }
      loops.push_back(std::move(s));
    }
  }

  Sample make(int depth) {
    const auto combine = [&](const Sample& a, const Sample& b, Index index, auto&& fn) {
      Sample out{std::move(index), {}};
      for (size_t k = 0; k < a.values.size(); ++k) out.values.push_back(fn(a.values[k], b.values[k]));
      return out;
    };
    if (depth == 0 || rng.bernoulli(0.15)) {
      if (rng.bernoulli(0.2)) {
        const int64_t c = rng.uniform_int(-9, 9);
        return {Index(c), std::vector<int64_t>(assignments.size(), c)};
      }
      return loops[rng.below(loops.size())];
    }
    const Sample a = make(depth - 1);
    const int64_t c = rng.bernoulli(0.5) ? int64_t{1} << rng.below(5) : rng.uniform_int(1, 9);
    switch (rng.below(7)) {
      case 0: {
        const Sample b = make(depth - 1);
        return combine(a, b, a.index + b.index, [](int64_t x, int64_t y) { return x + y; });
      }
      case 1: {
        const Sample b = make(depth - 1);
        return combine(a, b, a.index - b.index, [](int64_t x, int64_t y) { return x - y; });
      }
      case 2:
        return combine(a, a, a.index * c, [&](int64_t x, int64_t) { return x * c; });
      case 3:
        return combine(a, a, arena.floordiv(a.index, c), [&](int64_t x, int64_t) { return floor_div(x, c); });
      case 4:
        return combine(a, a, arena.floormod(a.index, c),
                       [&](int64_t x, int64_t) { return x - floor_div(x, c) * c; });
      case 5: {
        const Sample b = make(depth - 1);
        return combine(a, b, arena.minimum(a.index, b.index),
                       [](int64_t x, int64_t y) { return std::min(x, y); });
      }
      default: {
        const Sample b = make(depth - 1);
        return combine(a, b, arena.maximum(a.index, b.index),
                       [](int64_t x, int64_t y) { return std::max(x, y); });
      }
    }
  }
};

TEST(Index, ValuesRangesAndComparisonsAreSound) {
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Generator g(seed);
    const Sample s = g.make(static_cast<int>(1 + seed % 5));
    const ir::Interval range = g.arena.range(s.index);
    const Index resolved = g.arena.resolve(s.index);
    const Index less = g.arena.less_than_zero(s.index);
    const ir::Expr e = g.arena.to_expr(s.index);
    const ir::Expr r = g.arena.to_expr(resolved);
    const ir::Expr l = g.arena.to_expr(less);
    using Op = ir::BinaryOp;
    for (size_t k = 0; k < g.assignments.size(); ++k) {
      const auto value = [&](const ir::Expr& x) { return test::evaluate_expr(x, g.assignments[k]).i; };
      const int64_t v = s.values[k];
      ASSERT_EQ(value(e), v) << "seed " << seed << ": " << ir::print(e);
      ASSERT_EQ(value(r), v) << "seed " << seed << ": " << ir::print(r);
      ASSERT_EQ(value(l) < 0, v < 0) << "seed " << seed << ": " << ir::print(l);
      ASSERT_GE(v, range.min) << "seed " << seed << ": " << ir::print(e);
      ASSERT_LE(v, range.max) << "seed " << seed << ": " << ir::print(e);
      ASSERT_EQ(value(g.arena.compare(Op::kLt, s.index)) != 0, v < 0) << "seed " << seed;
      ASSERT_EQ(value(g.arena.compare(Op::kLe, s.index)) != 0, v <= 0) << "seed " << seed;
      ASSERT_EQ(value(g.arena.compare(Op::kGt, s.index)) != 0, v > 0) << "seed " << seed;
      ASSERT_EQ(value(g.arena.compare(Op::kGe, s.index)) != 0, v >= 0) << "seed " << seed;
      ASSERT_EQ(value(g.arena.compare(Op::kEq, s.index)) != 0, v == 0) << "seed " << seed;
      ASSERT_EQ(value(g.arena.compare(Op::kNe, s.index)) != 0, v != 0) << "seed " << seed;
    }
  }
}

// Ranges and quotients under facts are valid for the assignments that satisfy the facts.
TEST(Index, FactsNarrowRangesSoundly) {
  int narrowed = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Generator g(seed);
    const Sample fact = g.make(static_cast<int>(1 + seed % 3));
    const Sample before = g.make(3);
    const ir::Interval wide = g.arena.range(before.index);
    const IndexArena::Mark mark = g.arena.mark();
    g.arena.learn_not_positive(fact.index);
    const Sample after = g.make(3);
    const ir::Interval narrow = g.arena.range(before.index);
    narrowed += narrow.min > wide.min || narrow.max < wide.max ? 1 : 0;
    const ir::Interval range = g.arena.range(after.index);
    const ir::Expr e = g.arena.to_expr(after.index);
    for (size_t k = 0; k < g.assignments.size(); ++k) {
      if (fact.values[k] > 0) continue;
      ASSERT_EQ(test::evaluate_expr(e, g.assignments[k]).i, after.values[k])
          << "seed " << seed << ": " << ir::print(e);
      ASSERT_GE(after.values[k], range.min) << "seed " << seed;
      ASSERT_LE(after.values[k], range.max) << "seed " << seed;
      ASSERT_GE(before.values[k], narrow.min) << "seed " << seed;
      ASSERT_LE(before.values[k], narrow.max) << "seed " << seed;
    }
    g.arena.rollback(mark);
    EXPECT_EQ(g.arena.range(before.index).min, wide.min);
    EXPECT_EQ(g.arena.range(before.index).max, wide.max);
  }
  EXPECT_GT(narrowed, 500);
}

TEST(Index, WrittenAsPeopleWould) {
  IndexArena arena;
  const ir::Var vi("i"), vj("j"), vf("f");
  const Index i = arena.loop(vi, 8);
  const Index j = arena.loop(vj, 4);
  const Index f = arena.loop(vf, 60);
  const auto text = [&](const Index& x) { return ir::print(arena.to_expr(arena.resolve(x))); };
  EXPECT_EQ(text(j + i * 4 + 3), "i * 4 + j + 3");
  EXPECT_EQ(text(Index(7) - i), "7 - i");
  EXPECT_EQ(text(arena.floordiv(i * 4 + j, 8)), "i // 2");
  EXPECT_EQ(text(arena.floormod(i * 4 + j, 8)), "i % 2 * 4 + j");
  EXPECT_EQ(text(arena.floordiv(i * 4 + j, 4)), "i");
  EXPECT_EQ(text(arena.floordiv(f, 6) * 6 + arena.floormod(f, 6)), "f");
  EXPECT_EQ(text(arena.floordiv(arena.floordiv(f, 3), 5)), "f // 15");
  EXPECT_EQ(text(arena.floormod(arena.floormod(f, 12), 4)), "f % 4");
  EXPECT_EQ(text(arena.floordiv(arena.floormod(f, 12), 4)), "f // 4 % 3");
  EXPECT_EQ(text(arena.minimum(i, j + 8)), "i");
  EXPECT_EQ(ir::print(arena.compare(ir::BinaryOp::kGe, i * 4 + j - 5)), "4 < i * 4 + j");
  EXPECT_EQ(ir::print(arena.compare(ir::BinaryOp::kLt, arena.floordiv(f, 6) - 3)), "f < 18");
  EXPECT_EQ(ir::print(arena.compare(ir::BinaryOp::kLt, i - 8)), "true");
}

}  // namespace
}  // namespace tensorsmith::lower::index_test
