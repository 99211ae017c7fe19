// Lowered programs as trees of loops, and the summaries of our own programs.
#include "feature/nest_walk.h"

#include <gtest/gtest.h>

#include <cmath>

#include "feature/program_summary.h"
#include "ir/text.h"
#include "lower/lower.h"

namespace tensorsmith::feature::nest_walk_test {
namespace {

NestTree tree_of(const char* text) {
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().message();
  return walk_nests(*program);
}

double runs_of(const NestTree& tree, const NestLeaf& leaf) {
  double out = leaf.share;
  for (const NestLoopId loop : leaf.path) out *= tree.loops[loop].extent;
  return out;
}

// A row of B is read contiguously and a column of A element by element; C is invariant in k.
TEST(NestWalk, WhatAMatrixProductTouches) {
  const NestTree tree = tree_of(R"(program kernel {
  input A: f32[32, 64]
  input B: f32[64, 48]
  output C: f32[32, 48]
  for i in 32 {
    for k in 64 {
      vectorized j in 48 {
        C[i, j] = C[i, j] + A[i, k] * B[k, j]
      }
    }
  }
}
)");
  ASSERT_EQ(tree.leaves.size(), 1u);
  const NestLeaf& leaf = tree.leaves[0];
  EXPECT_TRUE(leaf.update);
  EXPECT_EQ(leaf.multiply_adds, 1);
  EXPECT_EQ(leaf.others, 0);
  EXPECT_EQ(runs_of(tree, leaf), 32 * 64 * 48);
  ASSERT_EQ(leaf.accesses.size(), 4u);  // C written and read, A, B
  const NestAccess &a = leaf.accesses[2], &b = leaf.accesses[3];
  EXPECT_EQ(a.vector_step, 0);
  EXPECT_EQ(b.vector_step, 1);
  EXPECT_TRUE(a.moves(0) && a.moves(1) && !a.moves(2));
  const Touched whole = touched_by(a, leaf, tree, 0, 64), column = touched_by(b, leaf, tree, 1, 64);
  EXPECT_EQ(whole.elements, 32 * 64);
  EXPECT_EQ(whole.run, 4 * 32 * 64);
  EXPECT_EQ(column.elements, 64 * 48);
  EXPECT_EQ(touched_by(b, leaf, tree, 2, 64).elements, 48);
  EXPECT_EQ(touched_by(b, leaf, tree, 2, 64).run, 4 * 48);
  EXPECT_EQ(touched_by(leaf.accesses[0], leaf, tree, 1, 64).elements, 48);
}

// Branches count as often as they are taken: 30 of 32 iterations, 2 of them; also shorter last
// rounds.
TEST(NestWalk, BranchesAndTails) {
  const NestTree tree = tree_of(R"(program kernel {
  input A: f32[100]
  output C: f32[100]
  for i in 32 {
    if i < 30 {
      C[i] = A[i]
    } else {
      C[i] = A[i] + 1.0
    }
  }
  for i.0 in 7 {
    for i.1 in min(100 - i.0 * 16, 16) {
      C[i.0 * 16 + i.1] = select(i.0 < 1, A[i.0 * 16 + i.1], 0.0)
    }
  }
}
)");
  ASSERT_EQ(tree.leaves.size(), 3u);
  EXPECT_NEAR(tree.leaves[0].share, 30.0 / 32, 0.02);
  EXPECT_NEAR(tree.leaves[1].share, 2.0 / 32, 0.02);
  EXPECT_NEAR(runs_of(tree, tree.leaves[2]), 100, 3);
  ASSERT_EQ(tree.leaves[2].accesses.size(), 2u);
  EXPECT_NEAR(tree.leaves[2].accesses[1].count, 1.0 / 7, 0.03);
  EXPECT_EQ(tree.leaves[2].selects, 1);
}

// A transform is written as branches in unrolled loops; exactly the operations that remain are
// counted.
TEST(NestWalk, UnrolledBranchesCostNothing) {
  const NestTree tree = tree_of(R"(program kernel {
  input A: f32[4, 64]
  output C: f32[3, 64]
  unrolled r in 3 {
    vectorized c in 64 {
      C[r, c] = select(r < 1, A[0, c] - A[2, c], select(r < 2, A[1, c] + A[2, c] + A[3, c], A[1, c]))
    }
  }
}
)");
  ASSERT_EQ(tree.leaves.size(), 1u);
  const NestLeaf& leaf = tree.leaves[0];
  EXPECT_NEAR(leaf.others, (1 + 2 + 0) / 3.0, 1e-12);
  EXPECT_EQ(leaf.selects, 0);
  ASSERT_EQ(leaf.accesses.size(), 2u);  // all reads of A are one access
  EXPECT_NEAR(leaf.accesses[1].count, (2 + 3 + 1) / 3.0, 1e-12);
  EXPECT_EQ(touched_by(leaf.accesses[1], leaf, tree, 0, 64).elements, 4 * 64);
}

double value_of(const ProgramSummary& summary, const char* name) {
  const SummarySchema& schema = summary_schema(summary.kind);
  if (const auto r = schema.resources.find(name)) return summary.resources[*r];
  if (const auto c = schema.columns.find(name)) return static_cast<double>(summary.columns[*c]);
  ADD_FAILURE() << name;
  return 0;
}

ProgramSummary summary_of(const char* workload, const char* trace, const target::Device& device) {
  const auto parsed = ir::parse_workload(workload);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message();
  WorkloadAccess access = analyze_accesses(*parsed, 1e6);
  access.workload = std::make_shared<const ir::Workload>(*parsed);
  const auto steps = sched::parse_trace(trace);
  EXPECT_TRUE(steps.ok()) << steps.error().message();
  const auto summary = summarize_program(access, {}, *steps, device);
  EXPECT_EQ(summary.kind, ProgramKind::kCpuNests);
  return summary;
}

target::Device one_core() {
  target::Device device;
  device.clock_ghz = 2;
  device.cpu().vector_bytes = 64;
  device.cpu().vector_registers = 32;
  device.cpu().fma_per_cycle = 1;
  device.l1_bytes = 32 << 10;
  device.l2_bytes = 1 << 20;
  device.l3_bytes = 32 << 20;
  device.memory_bandwidth_gbs = 20;
  device.peak_f32_gflops = 64;
  return device;
}

constexpr const char* kConv = R"(workload {
  input X: f32[1, 64, 34, 34]
  const W: f32[64, 64, 3, 3]
  conv2d: f32[n: 1, k: 64, h: 32, w: 32] = sum{rc: 64, rh: 3, rw: 3} X[n, rc, h + rh, w + rw] * W[k, rc, rh, rw]
  output conv2d
}
)";

// F(4x4, 3x3) multiplies 36 values for 16 results, where the definition multiplies 144.
TEST(NestSummary, WinogradByWhatItMultiplies) {
  const target::Device device = one_core();
  const auto direct = summary_of(kConv, "", device),
             winograd = summary_of(kConv, "winograd stage=2 m=4\n", device);
  const double products = 64.0 * 64 * 9 * 1024;
  // The unit of 512 bits, with one product per cycle, processes two short vectors.
  EXPECT_NEAR(value_of(direct, "multiply_adds"), products / 4e9, 1e-6 * products / 4e9);
  EXPECT_NEAR(std::exp2(value_of(direct, "executed_flops")), 2 * products, 1e-3 * products);
  const double left = std::exp2(value_of(winograd, "executed_flops")) / (2 * products);
  EXPECT_GT(left, 0.25);
  EXPECT_LT(left, 0.40);  // including the transforms
}

// 4 x 32 results in 8 vectors over all of k, computed by hand.
TEST(NestSummary, RegisterTileByHand) {
  const char* matmul = R"(workload {
  input A: f32[64, 128]
  input B: f32[128, 64]
  C: f32[i: 64, j: 64] = sum{k: 128} A[i, k] * B[k, j]
  output C
}
)";
  const target::Device device = one_core();
  const auto s = summary_of(matmul,
                            "cache_write stage=2 scope=local\n"
                            "split stage=3 iter=0 lengths=[4] inner=true tail=peel\n"
                            "split stage=3 iter=2 lengths=[2,16] inner=true tail=peel\n"
                            "reorder stage=3 order=[0,2,1,3,4]\n"
                            "annotate stage=3 iter=2 as=unroll\n"
                            "annotate stage=3 iter=3 as=unroll\n"
                            "annotate stage=3 iter=4 as=vectorize\n"
                            "split stage=2 iter=1 lengths=[16] inner=true tail=peel\n"
                            "reorder stage=2 order=[3,0,1,2]\n"
                            "annotate stage=2 iter=1 as=unroll\n"
                            "annotate stage=2 iter=2 as=unroll\n"
                            "annotate stage=2 iter=3 as=vectorize\n"
                            "compute_at stage=2 target=3 iter=1\n",
                            device);
  const double cycle = 1 / 2e9, steps = 16.0 * 2 * 128;
  EXPECT_NEAR(value_of(s, "multiply_adds"), steps * 8 * cycle, 1e-12);
  EXPECT_NEAR(value_of(s, "broadcasts"), steps * 4 * 0.5 * cycle, 1e-12);
  EXPECT_NEAR(value_of(s, "latency"), steps * 4 * cycle, 1e-12);
  EXPECT_EQ(std::exp2(value_of(s, "heavy_accumulators")), 8);
  EXPECT_EQ(std::exp2(value_of(s, "heavy_window")), 128);
  EXPECT_EQ(value_of(s, "spills"), 0);
  // 2 vectors of B per step; the 8 vectors that are written at the end are read once.
  EXPECT_NEAR(value_of(s, "loads"), (steps * 2 + 32 * (8 + 8)) * cycle, 32 * 8 * cycle);
  // All data fits in the second-level cache, so nothing comes from the third.
  EXPECT_GT(value_of(s, "from_l2"), 0);
  EXPECT_EQ(value_of(s, "from_l3"), 0);
  EXPECT_EQ(value_of(s, "from_memory"), 0);
}

// The same loops on cores with other units: the cost of a vector depends on what a core can start
// per cycle.
TEST(NestSummary, RatesAreTheCores) {
  const char* axpy = R"(workload {
  input A: f32[1024]
  input B: f32[1024]
  C: f32[i: 1024] = A[i] * 2.0 + B[i]
  output C
}
)";
  const char* whole =
      "split stage=2 iter=0 lengths=[16] inner=true tail=peel\nannotate stage=2 iter=1 as=vectorize\n";
  const char* half =
      "split stage=2 iter=0 lengths=[8] inner=true tail=peel\nannotate stage=2 iter=1 as=vectorize\n";
  const double cycle = 1 / 2e9;
  target::Device halves = one_core(), wide = one_core(), narrow = one_core();
  wide.cpu().fma_per_cycle = 2;
  // 64 vectors of each array; two loads and a store per cycle, or half as many vectors if the core
  // splits them.
  EXPECT_NEAR(value_of(summary_of(axpy, whole, wide), "loads"), 128 * 0.5 * cycle, 1e-12);
  EXPECT_NEAR(value_of(summary_of(axpy, whole, wide), "stores"), 64 * cycle, 1e-12);
  EXPECT_NEAR(value_of(summary_of(axpy, whole, halves), "loads"), 128 * cycle, 1e-12);
  EXPECT_NEAR(value_of(summary_of(axpy, whole, halves), "stores"), 64 * 2 * cycle, 1e-12);
  // With half as long vectors there are twice as many, and none is split.
  EXPECT_NEAR(value_of(summary_of(axpy, half, halves), "loads"), 256 * 0.5 * cycle, 1e-12);
  EXPECT_NEAR(value_of(summary_of(axpy, half, halves), "stores"), 128 * cycle, 1e-12);
  // Bytes arrive at the rates of the device's caches, or of a typical core's if it has no figures.
  const char* sum = R"(workload {
  input A: f32[65536]
  C: f32[i: 65536] = A[i] + 1.0
  output C
}
)";
  const char* vectors =
      "split stage=1 iter=0 lengths=[16] inner=true tail=peel\nannotate stage=1 iter=1 as=vectorize\n";
  const double usual = value_of(summary_of(sum, vectors, halves), "from_l2");
  EXPECT_NEAR(usual, 2 * 4 * 65536 / 32.0 * cycle, 1e-3 * usual);
  halves.cpu().rates.l2_bytes_per_cycle = 64;
  EXPECT_NEAR(value_of(summary_of(sum, vectors, halves), "from_l2"), usual / 2, 1e-12);
  halves.l2_bytes = 64 << 10;
  halves.cpu().rates.l3_bytes_per_cycle = 8;
  EXPECT_NEAR(value_of(summary_of(sum, vectors, halves), "from_l3"), 2 * 4 * 65536 / 8.0 * cycle,
              1e-3 * 65536 * cycle);
  // Without FMAs a product takes three instructions; a core with separate pipes for additions
  // starts one and a half times as many.
  narrow.arch = "x86-64";
  narrow.processor = "znver4";
  narrow.cpu().vector_bytes = 16;
  const char* of_four =
      "split stage=2 iter=0 lengths=[4] inner=true tail=peel\nannotate stage=2 iter=1 as=vectorize\n";
  const double with_adders = value_of(summary_of(axpy, of_four, narrow), "multiply_adds");
  narrow.processor = "skylake";
  EXPECT_NEAR(with_adders, value_of(summary_of(axpy, of_four, narrow), "multiply_adds") / 1.5, 1e-12);
  EXPECT_GT(with_adders, 0);
}

// If a program's data is larger than a cache, all of it comes from the next level in each run.
TEST(NestSummary, StreamsComeFromWhereTheyLie) {
  const char* add = R"(workload {
  input A: f32[4194304]
  C: f32[i: 4194304] = A[i] + 1.0
  output C
}
)";
  const target::Device device = one_core();
  const auto s = summary_of(add,
                            "split stage=1 iter=0 lengths=[16] inner=true tail=peel\n"
                            "annotate stage=1 iter=1 as=vectorize\n",
                            device);
  EXPECT_NEAR(value_of(s, "from_memory"), 2 * 4 * 4194304 / 20e9, 1e-5);
  EXPECT_NEAR(value_of(s, "to_memory"), 4 * 4194304 / 20e9, 1e-5);
}

// A trace of another workload does not fit; the other summary is used instead.
TEST(NestSummary, ATraceThatDoesNotFit) {
  const auto parsed = ir::parse_workload(kConv).value();
  WorkloadAccess access = analyze_accesses(parsed, 1);
  access.workload = std::make_shared<const ir::Workload>(parsed);
  const auto trace = sched::parse_trace("split stage=99 iter=0 lengths=[2] inner=true tail=peel\n").value();
  EXPECT_EQ(summarize_program(access, {}, trace, one_core()).kind, ProgramKind::kCpuOther);
}

}  // namespace
}  // namespace tensorsmith::feature::nest_walk_test
