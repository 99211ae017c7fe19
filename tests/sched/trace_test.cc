#include <gtest/gtest.h>

#include "support/print_schedule.h"
#include "support/random_trace.h"
#include "support/random_workload.h"
#include "support/small_workloads.h"

namespace tensorsmith::sched::trace_test {
namespace {

ir::Workload draw_workload(uint64_t seed, Rng& rng) {
  return seed % 2 == 0 ? test::small::random(rng) : test::random_workload(seed);
}

TEST(Trace, EveryStepRoundTrips) {
  Trace trace;
  trace.steps = {
      Split{1, 2, {4, 8}, false, TailPolicy::kPeel},
      Split{0, 0, {}, true, TailPolicy::kPredicate},
      Split{0, 0, {16}, true, TailPolicy::kShift},
      Split{0, 0, {16}, true, TailPolicy::kOverrun},
      FollowSplit{3, 1, 0, 2},
      FollowFusedSplit{3, 1, {0, 1}, 1, false},
      Fuse{2, {1, 2, 3}},
      Fuse{2, {}},
      Reorder{2, {2, 0, 1}},
      Annotate{2, 0, Annotation::kThreadX},
      Annotate{2, 0, Annotation::kVectorize},
      Unroll{2, 512},
      ComputeAt{1, 2, 3},
      ReverseComputeAt{2, 1, 0},
      ComputeInline{4},
      ComputeRoot{-1},
      CacheRead{0, ir::MemoryScope::kShared, {2, 3}},
      CacheWrite{1, ir::MemoryScope::kGlobal},
      Rfactor{1, 4, 1},
      DecomposeReduction{1, 2},
      StorageAlign{1, 0, 32, 4},
      PackLayout{1, {{0, 1, 3}, {1, 16, INT64_MAX}, {1, 1, 16}}},
      PackLayout{1, {}},
      Winograd{4, 2},
      Dot{4, 2},
      Dot16{4, 2},
  };
  for (const Step& step : trace.steps) {
    const auto parsed = parse_trace(print(step));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    ASSERT_EQ(parsed->steps.size(), 1U);
    EXPECT_EQ(parsed->steps[0], step) << print(step);
  }
  const auto parsed = parse_trace(print(trace));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, trace);
}

TEST(Trace, TextIsAsDocumented) {
  EXPECT_EQ(print(Step(Split{3, 0, {4, 8}, true, TailPolicy::kPeel})),
            "split stage=3 iter=0 lengths=[4,8] inner=true tail=peel");
  EXPECT_EQ(print(Step(PackLayout{1, {{0, 1, 3}, {1, 1, 16}}})), "pack_layout stage=1 layout=[0/1%3,1/1%16]");
  EXPECT_EQ(print(Step(CacheRead{0, ir::MemoryScope::kShared, {2}})),
            "cache_read stage=0 scope=shared readers=[2]");
}

TEST(Trace, BadTextIsRefusedWithItsLine) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"tile stage=1", "line 1: unknown step 'tile'"},
      {"\n\nsplit stage=1", "line 3: expected 'iter=...'"},
      {"split stage=x", "line 1: 'stage' is not an integer"},
      {"split stage=99999999999", "line 1: 'stage' is out of range"},
      {"split stage=1 iter=0 lengths=[4,]", "line 1: 'lengths' ends with a comma"},
      {"split stage=1 iter=0 lengths=4", "line 1: 'lengths' is not a list like [1,2]"},
      {"split stage=1 iter=0 lengths=[4,b]", "line 1: 'lengths' contains a value that is not an integer"},
      {"fuse stage=1 iters=[99999999999]", "line 1: 'iters' contains a value that is not an integer"},
      {"split stage=1 iter=0 lengths=[4] inner=yes", "line 1: 'inner' is neither true nor false"},
      {"split stage=1 iter=0 lengths=[4] inner=true tail=drop",
       "line 1: 'tail' is not one of predicate, peel, shift, overrun"},
      {"annotate stage=1 iter=0 as=fast", "line 1: unknown annotation 'fast'"},
      {"cache_write stage=1 scope=warp", "line 1: 'scope' is not one of global, shared, local"},
      {"pack_layout stage=1 layout=[0/1]", "line 1: 'layout' is not a list like [0/1%3,1/16%4]"},
      {"compute_root stage=1 now", "line 1: unexpected text after the step"},
  };
  for (const auto& c : cases) {
    const auto parsed = parse_trace(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt) << c.text;
    EXPECT_EQ(parsed.error().message(), c.message);
  }
}

TEST(Trace, RandomTracesRoundTripAndReplay) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const ir::Workload workload = draw_workload(seed, rng);
    test::RandomTraceOptions options;
    options.thread_axes = seed % 3 == 1;
    const ScheduleBuilder builder = test::random_schedule(workload, rng, options);
    const auto parsed = parse_trace(print(builder.trace()));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    ASSERT_EQ(*parsed, builder.trace());
    const auto replayed = replay(workload, *parsed);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message() << "\n" << print(builder.trace());
    ASSERT_EQ(test::print_schedule(*replayed), test::print_schedule(builder.schedule()));
    const Status sound = ir::verify(test::workload_of(*replayed));
    ASSERT_TRUE(sound.ok()) << sound.error().message() << "\n" << print(builder.trace());
  }
}

// Random traces are useful only if they use every primitive.
TEST(Trace, RandomTracesUseEveryPrimitive) {
  std::vector<int> used(std::variant_size_v<Step>, 0);
  int attached = 0;
  constexpr int kTraces = 2000;
  for (uint64_t seed = 0; seed < kTraces; ++seed) {
    Rng rng(seed);
    const ScheduleBuilder builder = test::random_schedule(draw_workload(seed, rng), rng);
    std::vector<char> here(used.size(), 0);
    for (const Step& step : builder.trace().steps) here[step.index()] = 1;
    for (size_t k = 0; k < used.size(); ++k) used[k] += here[k];
    for (const Stage& stage : builder.schedule().stages) attached += stage.attach == AttachKind::kAt ? 1 : 0;
  }
  const Step steps[] = {
      Split{},      FollowSplit{}, FollowFusedSplit{},   Fuse{},          Reorder{},     Annotate{},
      Unroll{},     ComputeAt{},   ReverseComputeAt{},   ComputeInline{}, ComputeRoot{}, CacheRead{},
      CacheWrite{}, Rfactor{},     DecomposeReduction{}, StorageAlign{},  PackLayout{},  Winograd{},
      Dot{},        Dot16{}};
  for (const Step& step : steps) EXPECT_GT(used[step.index()], kTraces / 50) << step_name(step);
  EXPECT_GT(attached, kTraces / 2);
  if (std::getenv("TENSORSMITH_VERBOSE") != nullptr) {
    for (const Step& step : steps)
      std::printf("%s %d\n", std::string(step_name(step)).c_str(), used[step.index()]);
    std::printf("attached %d\n", attached);
  }
}

TEST(Trace, RandomTextNeverCrashes) {
  Rng rng(7);
  const ir::Workload workload = test::small::conv2d(3, 6, 4, 3, 1, 1);
  for (int round = 0; round < 300; ++round) {
    std::string text = print(test::random_trace(workload, rng));
    for (int edits = 0; edits < 4 && !text.empty(); ++edits) {
      const size_t at = rng.below(text.size());
      if (rng.bernoulli(0.3)) {
        text.erase(at, rng.below(9));
      } else {
        text[at] =
            static_cast<char>(rng.bernoulli(0.7) ? "0123456789=[],-/% \n"[rng.below(19)] : rng.below(256));
      }
    }
    const auto parsed = parse_trace(text);
    if (!parsed.ok()) continue;
    const auto again = parse_trace(print(*parsed));
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(*again, *parsed);
    // A trace that parses may be illegal: replay then refuses it or applies it, nothing else.
    const auto replayed = replay(workload, *parsed);
    if (replayed.ok()) {
      ASSERT_TRUE(infer_bounds(*replayed).ok());
    }
  }
}

TEST(Trace, AFailedStepChangesNothing) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const ir::Workload workload = draw_workload(seed, rng);
    ScheduleBuilder builder(workload);
    for (int i = 0; i < 20; ++i) {
      const std::string before = test::print_schedule(builder.schedule());
      const size_t steps = builder.trace().steps.size();
      const Step step = test::propose_step(builder.schedule(), builder.trace(), rng);
      const Status status = builder.apply(step);
      if (status.ok()) continue;
      ASSERT_EQ(test::print_schedule(builder.schedule()), before) << print(step);
      ASSERT_EQ(builder.trace().steps.size(), steps);
      ASSERT_NE(status.error().place.find("step " + std::to_string(steps)), std::string::npos);
      ASSERT_FALSE(status.error().reason.empty());
    }
  }
}

}  // namespace
}  // namespace tensorsmith::sched::trace_test
