// The lower bound of the time on a device.
#include "learn/latency/least_time.h"

#include <gtest/gtest.h>

#include "sched/step.h"
#include "support/standard_workloads.h"

namespace tensorsmith::learn::least_time_test {
namespace {

target::Device device() {
  target::Device d = target::find_device("xeon-8358").value();
  d.l1_bytes = 1 << 10;
  d.l2_bytes = 1 << 12;  // with 32 cores 128 KiB
  d.l3_bytes = 1 << 17;
  return d;
}

// The lower bound for the workload with these steps.
double least(const ir::Workload& workload, const target::Device& d,
             const std::vector<sched::Step>& steps = {}) {
  const auto schedule = sched::replay(workload, sched::Trace{steps});
  EXPECT_TRUE(schedule.ok()) << schedule.error().message();
  const auto leaves = feature::extract_leaves(*schedule, {});
  EXPECT_TRUE(leaves.ok()) << leaves.error().message();
  return least_seconds(workload, *schedule, *leaves, d);
}

TEST(LeastTime, PeakOfTheCoresThatHaveWork) {
  const target::Device d = device();
  // At the highest clock, even if the file's peak rate is for another clock.
  ASSERT_GT(d.boost_clock_ghz, d.clock_ghz);
  const double flops = 2.0 * 512 * 256 * 256;
  const double peak = d.peak_f32_gflops * 1e9 * d.boost_clock_ghz / d.clock_ghz;
  const ir::Workload matmul = test::standard::matmul(512, 256, 256);
  // Without a parallel loop one core works; with one of 512 iterations all cores; with one of 16
  // half of them.
  EXPECT_NEAR(least(matmul, d), flops / (peak / 32), 1e-9);
  EXPECT_NEAR(least(matmul, d, {sched::Annotate{2, 0, sched::Annotation::kParallel}}), flops / peak, 1e-9);
  const double half = least(matmul, d,
                            {sched::Split{2, 0, {32}, true, sched::TailPolicy::kPredicate},
                             sched::Annotate{2, 0, sched::Annotation::kParallel}});
  EXPECT_NEAR(half, flops / (peak / 2), 1e-9);
  // Bytes are multiplied four per lane.
  EXPECT_NEAR(least(test::standard::matmul(512, 256, 256, ir::DType::kI8), d), flops / 4 / (peak / 32), 1e-9);
}

// A separate multiplication and addition are no FMA: cores with pipes for additions start three
// such instructions in two cycles.
TEST(LeastTime, WithoutFmas) {
  const ir::Workload matmul = test::standard::matmul(512, 256, 256);
  const double flops = 2.0 * 512 * 256 * 256;
  target::Device zen = target::find_device("epyc-9654:isa=sse4.2:threads=1").value();
  zen.boost_clock_ghz = 0;
  EXPECT_NEAR(least(matmul, zen), flops / (1.5 * zen.peak_f32_gflops * 1e9), 1e-9);
  target::Device skylake = target::find_device("xeon-8180:isa=sse4.2:threads=1").value();
  skylake.boost_clock_ghz = 0;
  EXPECT_NEAR(least(matmul, skylake), flops / (skylake.peak_f32_gflops * 1e9), 1e-9);
}

TEST(LeastTime, MemoryOnlyWhereTheCachesCannotHoldTheData) {
  target::Device d = device();
  // 3 MiB and 96 KiB: more and less than the caches' 256 KiB.
  const double large = 2.0 * 4 * (3 << 17), bandwidth = d.memory_bandwidth_gbs * 1e9;
  const sched::Step parallel = sched::Annotate{1, 0, sched::Annotation::kParallel};
  EXPECT_NEAR(streaming_seconds(large, d), large / bandwidth, 1e-12);
  EXPECT_EQ(streaming_seconds(96 << 10, d), 0);
  d.memory_bandwidth_gbs = 0;  // not known: gives no bound
  EXPECT_EQ(streaming_seconds(large, d), 0);
  d = device();
  const ir::Workload means = test::standard::row_means(1024, 1024);
  EXPECT_GE(least(means, d, {parallel}), 4.0 * 1024 * 1025 / bandwidth);
}

// Only the selected rows of a table have to be read.
TEST(LeastTime, GathersReadWhatTheyPick) {
  const auto table = ir::placeholder("table", ir::DType::kF32, {1000, 64});
  const auto rows = ir::placeholder("rows", ir::DType::kI64, {3});
  const ir::Axis p{ir::Var("p"), 3}, j{ir::Var("j"), 64};
  const ir::Expr row = ir::load(rows->output(), {p.var});
  const auto picked =
      ir::compute("picked", {p, j}, {}, ir::Combiner::kNone, {ir::load(table->output(), {row, j.var})});
  const ir::Workload gather{{table, rows, picked}, {picked->output()}};
  double bytes = 0;
  for (const double b : read_bytes(gather)) bytes += b;
  EXPECT_LE(bytes, 3 * 64 * (4 + 8));
  EXPECT_GE(bytes, 3 * 64 * 4);
}

// Winograd's filtering needs fewer operations than the definition, so the bound must be smaller.
TEST(LeastTime, AlgorithmsThatNeedFewerOperations) {
  const target::Device d = device();
  const ir::Workload conv =
      test::standard::conv2d({.n = 1, .h = 32, .w = 32, .ci = 64, .co = 64, .kh = 3, .kw = 3});
  int stage = -1;
  for (size_t i = 0; i < conv.operations.size(); ++i)
    if (conv.operations[i]->name == "conv") stage = static_cast<int>(i);
  ASSERT_GE(stage, 0);
  const double direct = least(conv, d), winograd = least(conv, d, {sched::Winograd{stage, 4}});
  EXPECT_NEAR(direct,
              2.0 * 64 * 64 * 9 * 32 * 32 / (d.peak_f32_gflops * 1e9 / 32 * d.boost_clock_ghz / d.clock_ghz),
              1e-9);
  EXPECT_LT(winograd, direct / 3.9);  // 36 products instead of 144
  EXPECT_GT(winograd, direct / 4.1);
}

}  // namespace
}  // namespace tensorsmith::learn::least_time_test
