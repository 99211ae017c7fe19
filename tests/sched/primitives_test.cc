// The schedules that each primitive makes, as text.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "sched/step.h"
#include "support/golden.h"
#include "support/print_schedule.h"
#include "support/small_workloads.h"

namespace tensorsmith::sched::primitives_test {
namespace {

constexpr TailPolicy kPredicate = TailPolicy::kPredicate;
constexpr TailPolicy kPeel = TailPolicy::kPeel;

// Applies the steps and compares trace and loop nest with golden/NAME.txt; appends several cases.
class Golden {
 public:
  explicit Golden(std::string name) : name_(std::move(name)) {}
  ~Golden() { test::expect_golden("sched/golden/" + name_ + ".txt", text_); }

  void add(const std::string& title, const ir::Workload& workload, const std::vector<Step>& steps) {
    ScheduleBuilder builder(workload);
    for (const Step& step : steps) {
      const Status status = builder.apply(step);
      ASSERT_TRUE(status.ok()) << status.error().message();
    }
    text_ += "# " + title + "\n" + print(builder.trace()) + "=>\n" +
             test::print_schedule(builder.schedule()) + "\n";
  }
  // Like add(), with the rewritten definitions.
  void add_with_definitions(const std::string& title, const ir::Workload& workload,
                            const std::vector<Step>& steps) {
    add(title, workload, steps);
    const auto schedule = replay(workload, Trace{steps});
    ASSERT_TRUE(schedule.ok());
    text_ += ir::print(test::workload_of(*schedule)) + "\n";
  }

 private:
  std::string name_;
  std::string text_;
};

TEST(Primitives, Split) {
  Golden golden("split");
  const ir::Workload w = test::small::matmul(10, 16, 8);
  golden.add("inner lengths", w, {Split{2, 0, {4}, true, kPredicate}});
  golden.add("several, peeled", w, {Split{2, 1, {2, 4}, true, kPeel}});
  golden.add("outer lengths", w, {Split{2, 1, {3, 2}, false, kPredicate}});
  golden.add("lengths beyond the extent", w, {Split{2, 0, {4, 7}, true, kPredicate}});
  golden.add("a split loop again", w,
             {Split{2, 0, {5}, true, kPredicate}, Split{2, 1, {2}, true, kPredicate}});
  golden.add("an attached stage moves to the innermost loop", test::small::matmul(8, 8, 8, true),
             {ComputeInline{4}, ComputeAt{2, 5, 0}, Split{5, 0, {4}, true, kPredicate}});
  golden.add("the init stays outside", w, {DecomposeReduction{2, 1}, Split{2, 1, {4}, true, kPredicate}});
}

TEST(Primitives, FollowSplits) {
  Golden golden("follow_split");
  const ir::Workload w = test::small::matmul(64, 64, 8, true);
  golden.add("all lengths", w, {Split{2, 0, {2, 4, 8}, true, kPeel}, FollowSplit{5, 0, 0, 3}});
  golden.add("merged lengths", w, {Split{2, 0, {2, 4, 8}, true, kPredicate}, FollowSplit{5, 0, 0, 2}});
  golden.add("fused factor", w,
             {Split{2, 0, {2, 4}, true, kPredicate}, Split{2, 3, {2, 3}, true, kPredicate}, Fuse{5, {0, 1}},
              FollowFusedSplit{5, 0, {0, 1}, 1, true}});
  golden.add("fused number of parts", w,
             {Split{2, 0, {2, 4}, true, kPredicate}, Split{2, 3, {2, 3}, true, kPredicate}, Fuse{5, {0, 1}},
              FollowFusedSplit{5, 0, {0, 1}, 1, false}});
}

TEST(Primitives, Fuse) {
  Golden golden("fuse");
  golden.add("two of three", test::small::matmul(4, 3, 5), {Fuse{2, {0, 1}}});
  golden.add("reduce loops", test::small::conv2d(3, 6, 4, 3, 1, 1), {Fuse{4, {4, 5, 6}}});
  golden.add("no loop at all: a unit loop", test::small::total_sum(4, 5), {Fuse{1, {}}});
  golden.add("an attached stage moves to the fused loop", test::small::matmul(8, 8, 8, true),
             {ComputeInline{4}, ComputeAt{2, 5, 1}, Fuse{5, {0, 1}}});
}

TEST(Primitives, Reorder) {
  Golden golden("reorder");
  const ir::Workload w = test::small::matmul(4, 6, 8);
  golden.add("reduce loop outermost", w, {Reorder{2, {2, 0, 1}}});
  golden.add(
      "tiles", w,
      {Split{2, 0, {2}, true, kPredicate}, Split{2, 2, {3}, true, kPredicate}, Reorder{2, {0, 2, 4, 1, 3}}});
}

TEST(Primitives, Annotate) {
  Golden golden("annotate");
  const ir::Workload w = test::small::matmul(8, 8, 8);
  golden.add(
      "cpu", w,
      {Annotate{2, 0, Annotation::kParallel}, Reorder{2, {0, 2, 1}}, Annotate{2, 2, Annotation::kVectorize}});
  golden.add("unrolled inside vectorized", w,
             {Annotate{2, 2, Annotation::kUnroll}, Annotate{2, 1, Annotation::kVectorize}});
  golden.add("removed", w, {Annotate{2, 0, Annotation::kParallel}, Annotate{2, 0, Annotation::kNone}});
  golden.add("gpu", w,
             {Split{2, 0, {4}, true, kPredicate}, Annotate{2, 0, Annotation::kBlockX},
              Annotate{2, 1, Annotation::kVThread}, Annotate{2, 2, Annotation::kThreadX},
              Annotate{2, 3, Annotation::kThreadY}});
  golden.add("auto unroll", w, {Unroll{2, 64}});
}

TEST(Primitives, ComputeAt) {
  Golden golden("compute_at");
  const ir::Workload w = test::small::conv2d(3, 8, 4, 3, 1, 1);
  const std::vector<Step> tiled = {ComputeInline{5}, Split{6, 2, {4}, true, kPredicate},
                                   Split{6, 4, {4}, true, kPredicate}, Reorder{6, {0, 1, 2, 4, 3, 5}}};
  const auto with = [&](const std::vector<Step>& more) {
    std::vector<Step> steps = tiled;
    steps.insert(steps.end(), more.begin(), more.end());
    return steps;
  };
  golden.add("convolution and padding in the tile", w, with({ComputeAt{4, 6, 3}, ComputeAt{3, 6, 3}}));
  golden.add("padding inside the attached convolution", w, with({ComputeAt{4, 6, 3}, ComputeAt{3, 4, 4}}));
  golden.add(
      "own splits apply to the tile", w,
      with({Split{4, 2, {2, 2}, true, kPredicate}, Split{4, 1, {4}, true, kPredicate}, ComputeAt{4, 6, 3}}));
  golden.add("compute_root undoes it", w, with({ComputeAt{4, 6, 3}, ComputeRoot{4}}));
}

TEST(Primitives, ReverseComputeAt) {
  Golden golden("reverse_compute_at");
  const ir::Workload w = test::small::matmul(16, 12, 8, true);
  golden.add("tiles, the inner loops merge", w,
             {ComputeInline{4}, Split{2, 0, {2, 4}, true, kPeel}, Split{2, 3, {2, 3}, true, kPredicate},
              Reorder{2, {0, 3, 1, 4, 6, 2, 5}}, ReverseComputeAt{5, 2, 1}});
  golden.add("the parallel loop moves", w,
             {ComputeInline{4}, Split{2, 0, {4}, true, kPredicate}, Annotate{2, 0, Annotation::kParallel},
              ReverseComputeAt{5, 2, 0}});
  golden.add("fused outer loops", w,
             {ComputeInline{4}, Split{2, 0, {4}, true, kPredicate}, Split{2, 2, {6}, true, kPredicate},
              Reorder{2, {0, 2, 1, 3, 4}}, Fuse{2, {0, 1}}, ReverseComputeAt{5, 2, 0}});
}

TEST(Primitives, ComputeInline) {
  Golden golden("compute_inline");
  golden.add_with_definitions("padding and bias", test::small::conv2d(3, 6, 4, 3, 1, 1),
                              {ComputeInline{3}, ComputeInline{5}});
}

TEST(Primitives, CacheRead) {
  Golden golden("cache_read");
  const ir::Workload w = test::small::softmax(4, 6);
  golden.add_with_definitions("one of two readers", w, {CacheRead{0, ir::MemoryScope::kLocal, {2}}});
  golden.add_with_definitions(
      "both readers, twice", w,
      {CacheRead{0, ir::MemoryScope::kShared, {1, 2}}, CacheRead{0, ir::MemoryScope::kShared, {1}}});
  golden.add_with_definitions("a reader that is inlined", test::small::matmul(8, 8, 8, true),
                              {ComputeInline{4}, CacheRead{3, ir::MemoryScope::kLocal, {4}}});
  golden.add_with_definitions("attachments keep their stage", test::small::matmul(8, 8, 8, true),
                              {ComputeAt{2, 4, 0}, CacheRead{0, ir::MemoryScope::kLocal, {2}}});
}

TEST(Primitives, CacheWrite) {
  Golden golden("cache_write");
  const ir::Workload w = test::small::matmul(8, 8, 8);
  golden.add_with_definitions(
      "accumulator in the tile", w,
      {CacheWrite{2, ir::MemoryScope::kLocal}, Split{3, 0, {4}, true, kPredicate}, ComputeAt{2, 3, 0}});
}

TEST(Primitives, Rfactor) {
  Golden golden("rfactor");
  golden.add_with_definitions("inner part of a split", test::small::matmul(4, 4, 10),
                              {Split{2, 2, {4}, true, kPredicate}, Rfactor{2, 3, 2}});
  golden.add_with_definitions("whole reduction of a fused loop", test::small::total_sum(4, 5),
                              {Fuse{1, {0, 1}}, Split{1, 0, {4}, true, kPredicate}, Rfactor{1, 1, 0}});
  golden.add_with_definitions("index of the largest", test::small::arg_max(4, 10),
                              {Split{1, 1, {4}, true, kPredicate}, Rfactor{1, 2, 1}});
  golden.add_with_definitions("untouched reduce axes stay", test::small::conv2d(4, 6, 4, 3, 1, 1),
                              {Split{4, 4, {2}, true, kPredicate}, Rfactor{4, 5, 0}});
}

TEST(Primitives, DecomposeReduction) {
  Golden golden("decompose_reduction");
  const ir::Workload w = test::small::matmul(4, 6, 8);
  golden.add("before a spatial loop", w, {DecomposeReduction{2, 1}});
  golden.add("default: before the reduce loops", w, {Reorder{2, {2, 0, 1}}});
}

TEST(Primitives, Storage) {
  Golden golden("storage");
  const ir::Workload w = test::small::matmul(40, 8, 8, true);
  golden.add("aligned stride", w, {StorageAlign{2, 0, 32, 1}});
  golden.add("packed constant", w, {PackLayout{1, {{1, 4, 2}, {0, 1, 8}, {1, 1, 4}}}});
  golden.add("packed and padded intermediate", w, {PackLayout{2, {{0, 16, 3}, {1, 1, 8}, {0, 1, 16}}}});
}

TEST(Primitives, Winograd) {
  Golden golden("winograd");
  golden.add_with_definitions("2 x 2 outputs a tile", test::small::conv2d(3, 6, 4, 3, 1, 1),
                              {Winograd{4, 2}});
  golden.add("tiles beyond the border, packed weights", test::small::conv2d(3, 7, 20, 3, 1, 0),
             {Winograd{4, 4}, PackLayout{1, {{0, 1, 6}, {1, 1, 6}, {3, 16, 2}, {2, 1, 3}, {3, 1, 16}}}});
}

TEST(Primitives, Dot) {
  Golden golden("dot");
  golden.add_with_definitions("bytes as they are", test::small::int8_matmul(4, 8, 10), {Dot{2, 2}});
  golden.add_with_definitions("bf16, with a tail", test::small::bf16_matmul(4, 8, 9, true), {Dot{2, 2}});
  golden.add_with_definitions("bf16, a border", test::small::bf16_conv2d(4, 6, 8, 3, 2, 1), {Dot{3, 4}});
  for (const uint64_t seed : {3, 5, 6}) {
    Rng rng(seed);
    const ir::Workload w = test::small::quantized_matmul(4, 8, 10, rng);
    const auto product = Schedule::create(w).stage_named("C");
    golden.add_with_definitions("zero points, seed " + std::to_string(seed), w,
                                {Dot{static_cast<int>(product->place()), 2}});
  }
}

TEST(Primitives, Dot16) {
  Golden golden("dot16");
  golden.add_with_definitions("bytes as they are", test::small::int8_matmul(4, 8, 9), {Dot16{2, 2}});
  for (const uint64_t seed : {3, 5, 6}) {
    Rng rng(seed);
    const ir::Workload w = test::small::quantized_matmul(4, 8, 10, rng);
    const auto product = Schedule::create(w).stage_named("C");
    golden.add_with_definitions("zero points, seed " + std::to_string(seed), w,
                                {Dot16{static_cast<int>(product->place()), 2}});
  }
}

// Stage numbers after insertions follow Ansor.
TEST(Primitives, StageNumbersAfterInsertion) {
  ScheduleBuilder builder(test::small::matmul(16, 16, 16, true));
  const auto names = [&] {
    std::string all;
    for (const Stage& stage : builder.schedule().stages) all += stage.op->name + " ";
    return all;
  };
  EXPECT_EQ(names(), "A B C bias D R ");
  ASSERT_TRUE(builder.apply(CacheWrite{2, ir::MemoryScope::kLocal}).ok());
  EXPECT_EQ(names(), "A B C.local C bias D R ");
  ASSERT_TRUE(builder.apply(CacheRead{1, ir::MemoryScope::kShared, {2}}).ok());
  EXPECT_EQ(names(), "A B B.shared C.local C bias D R ");
  ASSERT_TRUE(builder.apply(Rfactor{3, 2, 0}).ok());
  EXPECT_EQ(names(), "A B B.shared C.local.rf C.local C bias D R ");
}

TEST(Primitives, InitialScheduleIsOneLoopAnAxis) {
  const Schedule schedule = Schedule::create(test::small::conv2d(3, 6, 4, 3, 1, 1));
  ASSERT_EQ(schedule.stages.size(), 7U);
  const Stage& conv = schedule.stages[StageId(4)];
  EXPECT_EQ(conv.leaves.size(), 7U);
  EXPECT_TRUE(std::equal(conv.leaves.begin(), conv.leaves.end(), conv.iterators.ids().begin()));
  EXPECT_EQ(schedule.consumers_of(StageId(0)), std::vector{StageId(3)});
  EXPECT_EQ(schedule.consumers_of(StageId(4)), std::vector{StageId(5)});
  EXPECT_EQ(schedule.stage_named("conv"), StageId(4));
  EXPECT_EQ(schedule.stage_named("none"), std::nullopt);
  EXPECT_TRUE(schedule.is_output(StageId(6)));
  EXPECT_FALSE(schedule.is_output(StageId(4)));
}

}  // namespace
}  // namespace tensorsmith::sched::primitives_test
