// Which stages are grouped, and which combinations of their plans a space has.
#include <gtest/gtest.h>

#include <set>

#include "ir/text.h"
#include "space/design_space.h"
#include "space/estimate/parallel.h"

namespace tensorsmith::space::sketch_test {
namespace {

target::Device device() {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.cpu().vector_bytes = 32;
  d.cpu().fma_per_cycle = 2;
  d.cpu().cores = 2;
  return d;
}

DesignSpace build(const char* text) {
  const auto workload = ir::parse_workload(text);
  EXPECT_TRUE(workload.ok()) << workload.error().message();
  const auto space = DesignSpace::build(*workload, device(), {});
  EXPECT_TRUE(space.ok());
  return *space;
}

TEST(Sketches, RowsAreSharedWhereAnAxisIndexesAll) {
  const auto rows = build(R"(workload {
  input x: f32[64, 32]
  s: f32[i: 64] = sum{j: 32} x[i, j]
  out: f32[i: 64, j: 64] = exp(s[i]) * 2.0
  output out
})");
  EXPECT_EQ(rows.describe(0), "row-wise out of s");
}

// There are as many rows, but each is computed from another row of the sums.
TEST(Sketches, RowsAreNotSharedBecauseExtentsAreEqual) {
  const auto reversed = build(R"(workload {
  input x: f32[64, 32]
  s: f32[i: 64] = sum{j: 32} x[i, j]
  out: f32[i: 64, j: 64] = exp(s[63 - i]) * 2.0
  output out
})");
  for (size_t k = 0; k < reversed.num_sketches(); ++k)
    EXPECT_EQ(reversed.describe(static_cast<int>(k)).find("row-wise out of s"), std::string::npos)
        << reversed.describe(static_cast<int>(k));
}

// Three pools one after the other have 4 x 4 x 4 combinations of plans.
TEST(Sketches, WhatACapLeavesOutIsCounted) {
  const auto space = build(R"(workload {
  input x: f32[8, 30, 30]
  a: f32[c: 8, h: 28, w: 28] = max{r: 3, s: 3} x[c, h + r, w + s]
  b: f32[c: 8, h: 26, w: 26] = max{r: 3, s: 3} a[c, h + r, w + s]
  d: f32[c: 8, h: 24, w: 24] = max{r: 3, s: 3} b[c, h + r, w + s]
  output d
})");
  EXPECT_EQ(space.sketches_left_out(), 64 - 16);
  EXPECT_EQ(space.num_sketches(), 16U + 1U);
  std::set<std::string> all;
  bool each[3][3] = {};
  const std::string kinds[] = {"tile SRS ", "tile SSRSRS ", "window "}, stages = "abd";
  for (size_t k = 0; k + 1 < space.num_sketches(); ++k) {
    const std::string text = space.describe(static_cast<int>(k));
    EXPECT_TRUE(all.insert(text).second);
    for (int kind = 0; kind < 3; ++kind)
      for (int stage = 0; stage < 3; ++stage)
        each[kind][stage] = each[kind][stage] ||
                            text.find(kinds[kind] + stages[static_cast<size_t>(stage)]) != std::string::npos;
  }
  // Each plan of each pool occurs in some sketch.
  for (const auto& kind : each)
    for (const bool found : kind) EXPECT_TRUE(found);
  EXPECT_EQ(space.describe(0), "tile SRS a; tile SRS b; tile SRS d");
  EXPECT_EQ(build("workload {\n  input x: f32[8, 30]\n  y: f32[i: 8, j: 30] = x[i, j] + 1.0\n  output y\n}")
                .sketches_left_out(),
            0);
}

TEST(ParallelLoop, GainsTheWorkOverTheLargestShare) {
  const auto speedup = [](double extent, double tile, bool short_tail, int threads) {
    ParallelLoop loop;
    loop.add_axis(extent, tile, short_tail);
    return loop.speedup(threads);
  };
  EXPECT_EQ(speedup(128, 64, true, 2), 2);
  EXPECT_EQ(speedup(128, 32, true, 2), 2);
  EXPECT_DOUBLE_EQ(speedup(96, 32, true, 2), 1.5);
  // 126 and 2 rows: the second thread has almost nothing to do.
  EXPECT_DOUBLE_EQ(speedup(128, 126, true, 2), 128.0 / 126);
  // A predicated tail takes the time of a whole tile.
  EXPECT_EQ(speedup(128, 126, false, 2), 2);
  EXPECT_EQ(speedup(128, 128, true, 2), 1);
  EXPECT_DOUBLE_EQ(speedup(1000, 300, true, 4), 1000.0 / 300);
  // Every thread has the same number of whole tiles, and one of them the shorter tile besides.
  EXPECT_DOUBLE_EQ(speedup(250, 100, true, 2), 2.5 / 1.5);
  EXPECT_DOUBLE_EQ(speedup(290, 100, true, 2), 2.9 / 1.9);
  EXPECT_DOUBLE_EQ(speedup(890, 100, true, 8), 8.9 / 1.9);
  ParallelLoop both;
  both.add_axis(128, 126, true);
  both.add_axis(4, 1, true);
  EXPECT_EQ(both.iterations(), 8);
  // The second thread begins with the four short tiles and takes two of the first thread's; the
  // larger share is 4 x 2/126 + 2.
  EXPECT_NEAR(both.speedup(2), (4 + 8.0 / 126) / (2 + 8.0 / 126), 1e-12);
}

// 16 rows by 12 and two blocks: with the rows outside, the first thread has two whole tiles and the
// other thread two thirds of one tile.
TEST(ParallelLoop, RangesAreContiguous) {
  ParallelLoop outside, inside;
  outside.add_axis(16, 12, true);
  outside.add_axis(2, 1, true);
  inside.add_axis(2, 1, true);
  inside.add_axis(16, 12, true);
  EXPECT_NEAR(outside.speedup(2), (8.0 / 3) / (5.0 / 3), 1e-12);
  EXPECT_NEAR(inside.speedup(2), 2, 1e-12);
  EXPECT_NEAR(outside.speedup(4), 8.0 / 3, 1e-12);
}

}  // namespace
}  // namespace tensorsmith::space::sketch_test
