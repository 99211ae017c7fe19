#include "sched/mutate.h"

#include <gtest/gtest.h>

#include <set>

#include "support/random_trace.h"
#include "support/small_workloads.h"

namespace tensorsmith::sched::mutate_test {
namespace {

constexpr TailPolicy kPredicate = TailPolicy::kPredicate;

// Tiled and fused, with every kind of decision.
Trace tiled() {
  return {{ComputeInline{4}, Split{2, 0, {2, 4}, true, kPredicate}, Split{2, 3, {2, 4}, true, kPredicate},
           Reorder{2, {0, 3, 1, 4, 6, 2, 5}}, FollowSplit{5, 0, 1, 1}, FollowSplit{5, 2, 2, 1},
           Reorder{5, {0, 2, 1, 3}}, ComputeAt{2, 5, 1}, Annotate{2, 5, Annotation::kUnroll}, Unroll{2, 16}}};
}

TEST(Mutate, ChangesOneDecisionAndStaysLegal) {
  const Schedule fresh = Schedule::create(test::small::matmul(16, 16, 8, true));
  Rng rng(1);
  Trace trace = tiled();
  std::set<size_t> touched;
  for (int i = 0; i < 2000; ++i) {
    const auto next = mutate(fresh, trace, rng);
    ASSERT_TRUE(next.ok()) << next.error().message();
    ASSERT_EQ(next->steps.size(), trace.steps.size());
    size_t different = 0;
    for (size_t s = 0; s < trace.steps.size(); ++s) {
      ASSERT_EQ(next->steps[s].index(), trace.steps[s].index());
      if (next->steps[s] == trace.steps[s]) continue;
      ++different;
      touched.insert(s);
    }
    ASSERT_EQ(different, 1U);
    ASSERT_TRUE(replay(fresh, *next).ok());
    trace = *next;
  }
  EXPECT_EQ(touched, (std::set<size_t>{1, 2, 7, 8, 9}));
}

TEST(Mutate, TheSeedDecides) {
  const Schedule fresh = Schedule::create(test::small::matmul(16, 16, 8, true));
  Rng a(5);
  Rng b(5);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(*mutate(fresh, tiled(), a), *mutate(fresh, tiled(), b));
}

TEST(Mutate, RandomTracesMutateToLegalOnes) {
  int mutated = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const ir::Workload workload = test::small::random(rng);
    const Schedule fresh = Schedule::create(workload);
    const Trace trace = test::random_trace(workload, rng);
    const auto next = mutate(fresh, trace, rng);
    if (!next.ok()) {
      EXPECT_EQ(next.error().code, ErrorCode::kNotFound);
      continue;
    }
    ++mutated;
    const auto schedule = replay(fresh, *next);
    ASSERT_TRUE(schedule.ok()) << "seed " << seed;
    ASSERT_TRUE(infer_bounds(*schedule).ok()) << "seed " << seed;
  }
  EXPECT_GT(mutated, 200);
}

TEST(Mutate, Errors) {
  const Schedule fresh = Schedule::create(test::small::matmul(4, 4, 4));
  Rng rng(1);
  const auto nothing = mutate(fresh, Trace{{Fuse{2, {0, 1}}}}, rng);
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(nothing.error().message(), "trace: no decision of the trace could be changed legally");
  const auto broken = mutate(fresh, Trace{{Fuse{2, {1, 2}}}}, rng);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::kIllegal);
}

TEST(Crossover, MixesDecisions) {
  const Schedule fresh = Schedule::create(test::small::matmul(16, 16, 8, true));
  Rng rng(3);
  Trace other = tiled();
  for (int i = 0; i < 40; ++i) other = *mutate(fresh, other, rng);
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    const auto child = crossover(fresh, tiled(), other, rng);
    ASSERT_TRUE(child.ok()) << child.error().message();
    const Trace base = tiled();
    for (size_t s = 0; s < base.steps.size(); ++s)
      ASSERT_TRUE(child->steps[s] == base.steps[s] || child->steps[s] == other.steps[s]);
    ASSERT_TRUE(replay(fresh, *child).ok());
    seen.insert(print(*child));
  }
  EXPECT_GT(seen.size(), 4U);
}

}  // namespace
}  // namespace tensorsmith::sched::mutate_test
