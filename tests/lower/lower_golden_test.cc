// The loops of typical schedules, as text.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify_program.h"
#include "lower/lower.h"
#include "sched/step.h"
#include "support/golden.h"
#include "support/print_schedule.h"
#include "support/small_workloads.h"

namespace tensorsmith::lower::lower_golden_test {
namespace {

using namespace sched;  // NOLINT(google-build-using-namespace)

constexpr TailPolicy kPredicate = TailPolicy::kPredicate;
constexpr TailPolicy kPeel = TailPolicy::kPeel;

// Applies the steps and compares trace and program with golden/NAME.txt.
void expect_program(const std::string& name, const ir::Workload& workload, const std::vector<Step>& steps) {
  ScheduleBuilder builder(workload);
  for (const Step& step : steps) {
    const Status status = builder.apply(step);
    ASSERT_TRUE(status.ok()) << status.error().message() << "\n" << test::print_schedule(builder.schedule());
  }
  const auto lowered = lower(builder.schedule());
  ASSERT_TRUE(lowered.ok()) << lowered.error().message();
  const Status valid = ir::verify_in_bounds(lowered->program);
  EXPECT_TRUE(valid.ok()) << valid.error().message();
  test::expect_golden("lower/golden/" + name + ".txt",
                      print(builder.trace()) + "=>\n" + ir::print(lowered->program));
}

TEST(LowerGolden, Default) { expect_program("default", test::small::conv2d(3, 6, 4, 3, 1, 1), {}); }

// Stages A, B, C.local, C: C's tiles hold the accumulator of C.local.
std::vector<Step> tiled_matmul(TailPolicy tail) {
  return {
      CacheWrite{2, ir::MemoryScope::kLocal},
      Split{3, 0, {4, 2}, true, tail},
      Split{3, 3, {2, 16}, true, tail},
      Reorder{3, {0, 3, 1, 4, 2, 5}},
      Fuse{3, {0, 1}},
      Annotate{3, 0, Annotation::kParallel},
      Annotate{3, 4, Annotation::kVectorize},
      ComputeAt{2, 3, 2},
      Split{2, 2, {4}, true, tail},
      Reorder{2, {2, 0, 3, 1}},
      Annotate{2, 1, Annotation::kUnroll},
      Annotate{2, 3, Annotation::kVectorize},
      Unroll{2, 64},
      PackLayout{1, {{1, 16, 4}, {0, 1, 32}, {1, 1, 16}}},
  };
}
TEST(LowerGolden, TiledMatmul) {
  expect_program("tiled_matmul", test::small::matmul(16, 64, 32), tiled_matmul(kPredicate));
}
TEST(LowerGolden, TiledMatmulPredicated) {
  expect_program("tiled_matmul_predicated", test::small::matmul(13, 61, 30), tiled_matmul(kPredicate));
}
TEST(LowerGolden, TiledMatmulPeeled) {
  expect_program("tiled_matmul_peeled", test::small::matmul(13, 61, 30), tiled_matmul(kPeel));
}

TEST(LowerGolden, PeeledTails) {
  expect_program(
      "peeled_tail_vectorized", test::small::matmul(4, 21, 8),
      {Split{2, 1, {8}, true, kPeel}, Reorder{2, {0, 1, 3, 2}}, Annotate{2, 3, Annotation::kVectorize}});
  expect_program("peeled_tail_three_levels", test::small::matmul(2, 45, 3),
                 {Split{2, 1, {2, 2, 4}, true, kPeel}});
  expect_program("peeled_tail_reduce", test::small::matmul(4, 8, 21), {Split{2, 2, {8}, true, kPeel}});
  expect_program("predicated_tail_hoisted", test::small::matmul(4, 21, 8),
                 {Split{2, 1, {8}, true, kPredicate}, Reorder{2, {1, 2, 0, 3}}});
}

// Only a part of the last tile's vectors is needed: they become shorter instead of masked.
TEST(LowerGolden, ShortVectorsInTheTail) {
  expect_program("short_vectors_in_the_tail", test::small::matmul(4, 20, 8),
                 {Split{2, 1, {2, 8}, true, kPeel}, Reorder{2, {0, 1, 4, 2, 3}},
                  Annotate{2, 3, Annotation::kUnroll}, Annotate{2, 4, Annotation::kVectorize}});
}

// The last tile starts earlier, and stages attached to it follow; a reduction would add values
// twice.
TEST(LowerGolden, ShiftedTails) {
  constexpr TailPolicy kShift = TailPolicy::kShift;
  expect_program(
      "shifted_tail", test::small::matmul(10, 21, 8),
      {CacheWrite{2, ir::MemoryScope::kLocal}, Split{3, 0, {4}, true, kShift}, Split{3, 2, {8}, true, kShift},
       Reorder{3, {0, 2, 1, 3}}, Annotate{3, 3, Annotation::kVectorize}, ComputeAt{2, 3, 1}});
  expect_program("shifted_tail_of_reduction", test::small::matmul(10, 21, 8),
                 {Split{2, 0, {4}, true, kShift}});
}

// Stages X, W, bias, pad, conv, out (with the bias inlined).
TEST(LowerGolden, Convolution) {
  const ir::Workload w = test::small::conv2d(8, 14, 16, 3, 1, 1);
  expect_program("conv_pad_inlined", w, {ComputeInline{3}});
  expect_program("conv_pad_attached", w, {Split{4, 2, {7}, true, kPredicate}, ComputeAt{3, 4, 2}});
  expect_program("conv_tile_fused", w,
                 {
                     ComputeInline{5},
                     Split{6, 3, {7}, true, kPeel},
                     Split{6, 2, {4}, true, kPeel},
                     Split{6, 1, {8}, true, kPeel},
                     Reorder{6, {0, 1, 3, 5, 4, 6, 2}},
                     Fuse{6, {0, 1, 2}},
                     Annotate{6, 0, Annotation::kParallel},
                     Annotate{6, 4, Annotation::kVectorize},
                     ComputeAt{4, 6, 1},
                     Reorder{4, {0, 4, 5, 6, 2, 3, 1}},
                     Annotate{4, 6, Annotation::kVectorize},
                     ComputeAt{3, 4, 1},
                 });
}

// A tile's region beyond the tensor is computed if that is harmless: with the padding inlined, and
// attached.
TEST(LowerGolden, TileBeyondTheTensor) {
  const ir::Workload w = test::small::conv2d(3, 11, 6, 3, 1, 1);
  const std::vector<Step> tile = {
      ComputeInline{5},
      Split{6, 3, {4}, true, kPredicate},
      Split{6, 2, {4}, true, kPredicate},
      Split{6, 1, {4}, true, kPredicate},
      Reorder{6, {0, 1, 3, 5, 4, 6, 2}},
      ComputeAt{4, 6, 3},
      PackLayout{1, {{0, 4, 2}, {1, 1, 3}, {2, 1, 3}, {3, 1, 3}, {0, 1, 4}}},
  };
  std::vector<Step> inlined = tile;
  inlined.insert(inlined.begin(), ComputeInline{3});
  expect_program("tile_beyond_inlined_pad", w, inlined);
  std::vector<Step> attached = tile;
  attached.push_back(ComputeAt{3, 6, 3});
  expect_program("tile_beyond_attached_pad", w, attached);
}

// Sixteen of a block's 64 threads load the tile, but all loops over threads have the same extent;
// all threads reach the tile, even those beyond the last row.
TEST(LowerGolden, ThreadsOfASharedTile) {
  expect_program(
      "threads_of_a_shared_tile", test::small::matmul(20, 24, 16),
      {CacheWrite{2, ir::MemoryScope::kLocal}, CacheRead{0, ir::MemoryScope::kShared, {2}}, Split{4, 0, {8}},
       Split{4, 2, {8}}, Reorder{4, {0, 2, 1, 3}}, Fuse{4, {0, 1}}, Fuse{4, {1, 2}},
       Annotate{4, 0, Annotation::kBlockX}, Annotate{4, 1, Annotation::kThreadX}, Split{3, 2, {4}},
       Reorder{3, {2, 0, 1, 3}}, ComputeAt{3, 4, 1}, Fuse{1, {0, 1}}, Split{1, 0, {64, 2}},
       Annotate{1, 1, Annotation::kThreadX}, Annotate{1, 2, Annotation::kVectorize}, ComputeAt{1, 3, 0}});
}

TEST(LowerGolden, SoftmaxInOneLoop) {
  expect_program(
      "softmax_fused", test::small::softmax(6, 20),
      {ComputeAt{3, 4, 0}, ComputeAt{2, 4, 0}, ComputeAt{1, 4, 0}, Annotate{4, 0, Annotation::kParallel}});
}

TEST(LowerGolden, Reductions) {
  expect_program("argmax_rfactored", test::small::arg_max(4, 21),
                 {Split{1, 1, {8}, true, kPredicate}, Rfactor{1, 2, 1}});
  expect_program("reduction_decomposed", test::small::matmul(6, 8, 5),
                 {Reorder{2, {0, 2, 1}}, DecomposeReduction{2, 0}});
}

TEST(LowerGolden, Storage) {
  expect_program("storage_aligned", test::small::matmul(6, 16, 5, true), {StorageAlign{2, 0, 32, 4}});
  expect_program("intermediate_packed", test::small::matmul(6, 20, 5, true),
                 {PackLayout{2, {{1, 8, 3}, {0, 1, 6}, {1, 1, 8}}}});
  // Vectors of channels are contiguous, unless the loop around them runs along rows and whole rows
  // are stored.
  const ir::Workload w = test::small::conv2d(3, 6, 4, 3, 1, 1);
  std::vector<Step> steps = {Reorder{3, {0, 2, 3, 1}}, Annotate{3, 3, Annotation::kVectorize}};
  expect_program("stored_in_vectors", w, steps);
  steps.push_back(Annotate{3, 2, Annotation::kUnroll});
  expect_program("stored_in_rows", w, steps);
}

}  // namespace
}  // namespace tensorsmith::lower::lower_golden_test
