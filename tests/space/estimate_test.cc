// The estimate compared with measured times, and its parts one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/text.h"
#include "space/estimate/constants.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parts.h"
#include "support/estimate_measurements.h"

namespace tensorsmith::space::estimate_test {
namespace {

struct Quality {
  // Means over the tasks: rank correlation, and time of the program with the least estimate over the least time.
  double correlation = 0, chosen = 0;
  double trials = 0, found = 0;
  int tasks = 0;
};

Quality quality_of(const std::vector<test::MeasuredTask>& tasks, const std::string& device) {
  Quality q;
  for (const auto& task : tasks) {
    if (task.device_id != device) continue;
    const auto space = DesignSpace::build(task.workload, task.device, {});
    if (!space.ok()) continue;
    std::vector<double> estimates, seconds;
    for (const auto& trial : task.trials) {
      q.trials += 1;
      const auto c = test::MeasuredTask::candidate(*space, trial);
      if (!c.ok()) continue;
      q.found += 1;
      estimates.push_back(space->estimate(*c));
      seconds.push_back(trial.seconds);
    }
    q.correlation += test::rank_correlation(estimates, seconds);
    const auto least = std::min_element(estimates.begin(), estimates.end()) - estimates.begin();
    q.chosen += seconds[static_cast<size_t>(least)] / *std::min_element(seconds.begin(), seconds.end());
    ++q.tasks;
  }
  q.correlation /= q.tasks;
  q.chosen /= q.tasks;
  return q;
}

// 48 tasks of the zoo, some twenty candidates each, one thread of an Emerald Rapids and of a Zen 4. For AVX2,
// AVX-512 and SSE4.2 the correlations are .65, .65 and .51 on the first, .66, .60 and .52 on the second; what is
// chosen takes 1.08, 1.10 and 1.10, and 1.07, 1.08 and 1.16 times as long as the fastest. Nothing was fitted to
// SSE4.2. With 90 other tasks on a Zen 3 these are .57 and 1.17; nothing was fitted to that either.
TEST(Estimate, OrdersWhatWasMeasured) {
  struct Limit {
    const char* file;
    const char* device;
    double correlation, chosen;
  };
  for (const Limit& limit :
       {Limit{"measurements", "avx2", 0.60, 1.13}, Limit{"measurements", "avx512", 0.60, 1.15},
        Limit{"measurements", "sse4.2", 0.46, 1.15}, Limit{"measurements_zen4", "avx2", 0.61, 1.12},
        Limit{"measurements_zen4", "avx512", 0.55, 1.13}, Limit{"measurements_zen4", "sse4.2", 0.47, 1.21},
        Limit{"measurements_zen3", "avx2", 0.52, 1.22}}) {
    const std::string name = std::string(limit.file) + " " + limit.device;
    const auto tasks = test::read_measurements(std::string(TENSORSMITH_SOURCE_DIR) + "/tests/data/estimate/" +
                                               limit.file + ".jsonl");
    ASSERT_TRUE(tasks.ok()) << tasks.error().message();
    const Quality q = quality_of(*tasks, limit.device);
    EXPECT_GE(q.tasks, 45) << name;
    EXPECT_GE(q.found, 0.95 * q.trials) << name << ": collect the measurements again (bench_estimate)";
    EXPECT_GE(q.correlation, limit.correlation) << name;
    EXPECT_LE(q.chosen, limit.chosen) << name;
  }
}

// The parts are those of the same estimate: they do not change it, and their cycles make up its time.
TEST(Estimate, PartsBelongToTheEstimate) {
  const auto tasks = test::read_measurements(std::string(TENSORSMITH_SOURCE_DIR) +
                                             "/tests/data/estimate/measurements.jsonl");
  ASSERT_TRUE(tasks.ok()) << tasks.error().message();
  int candidates = 0;
  for (const auto& task : *tasks) {
    const auto space = DesignSpace::build(task.workload, task.device, {});
    ASSERT_TRUE(space.ok()) << space.error().message();
    for (const auto& trial : task.trials) {
      const auto c = test::MeasuredTask::candidate(*space, trial);
      if (!c.ok() || !space->check(*c).ok()) continue;
      EstimateParts parts;
      space->estimate_parts(*c, parts);
      ASSERT_EQ(parts.seconds, space->estimate(*c)) << task.name;
      ++candidates;
      if (*c == space->plain_candidate()) continue;
      const double longest = std::max(
          {parts.arithmetic, parts.from_l2, parts.from_beyond, parts.waited, parts.written, parts.moved});
      const double cycles = parts.seconds * task.device.clock_ghz * 1e9;
      EXPECT_GT(longest, 0.1 * cycles) << task.name;
      // Transforms and attention report what they overlap with, too.
      EXPECT_LT(longest, 3 * cycles) << task.name;
    }
  }
  EXPECT_GT(candidates, 3000);
}

// The elements that a vector of this transposition reads are 2048 bytes apart, so their lines fall into two sets of
// L1. If a tile reads more lines than these hold, each line is fetched again for each element, and the program takes
// 2 to 13 times as long.
TEST(Estimate, StridedLinesMustFitIntoTheirSets) {
  int devices = 0;
  for (const char* file : {"measurements", "measurements_zen4"}) {
    auto tasks = test::read_measurements(std::string(TENSORSMITH_SOURCE_DIR) + "/tests/data/estimate/" +
                                         file + ".jsonl");
    ASSERT_TRUE(tasks.ok()) << tasks.error().message();
    std::erase_if(*tasks, [](const test::MeasuredTask& task) { return task.name != "move_1x8x64x128"; });
    for (const test::MeasuredTask& task : *tasks) {
      ++devices;
      EXPECT_LT(quality_of({task}, task.device_id).chosen, 1.6) << file << " " << task.device_id;
    }
  }
  EXPECT_EQ(devices, 6);
}

// 128 rows that are gathered take as long from a large table as from a small one.
TEST(Estimate, GatheredRowsAreNotTheWholeTable) {
  const auto seconds = [](int64_t rows) {
    const auto workload = ir::parse_workload(
        "workload {\n  input ids: i64[128]\n  const table: f32[" + std::to_string(rows) +
        ", 512]\n  gathered: f32[n: 128, c: 512] = table[ids[n], c]\n"
        "  mean: f32[n: 128] = sum{r: 512} gathered[n, r]\n"
        "  centred: f32[n: 128, c: 512] = gathered[n, c] - mean[n] / 512.0\n  output centred\n}");
    EXPECT_TRUE(workload.ok()) << workload.error().message();
    const auto space = DesignSpace::build(*workload, target::find_device("xeon-8358").value(), {});
    EXPECT_TRUE(space.ok());
    return space->estimate(space->default_candidate());
  };
  EXPECT_NEAR(seconds(30522) / seconds(1024), 1, 0.01);
}

TEST(Estimate, RankCorrelationIsThatOfPairs) {
  EXPECT_EQ(test::rank_correlation({1, 2, 3}, {10, 20, 30}), 1);
  EXPECT_EQ(test::rank_correlation({3, 2, 1}, {10, 20, 30}), -1);
  EXPECT_DOUBLE_EQ(test::rank_correlation({1, 3, 2}, {10, 20, 30}), 1.0 / 3);
  EXPECT_EQ(test::rank_correlation({1, 1}, {10, 20}), 0);
}

// Constants are read at each estimate, so that they can be fitted without rebuilding the space.
TEST(Estimate, ConstantsChangeIt) {
  const auto workload = ir::parse_workload(R"(workload {
  input a: f32[64, 64]
  const b: f32[64, 64]
  c: f32[i: 64, j: 64] = sum{k: 64} a[i, k] * b[k, j]
  output c
})");
  ASSERT_TRUE(workload.ok());
  Constants constants;
  target::Device device;
  device.arch = "x86-64";
  const auto space = DesignSpace::build(*workload, device, {.constants = &constants});
  ASSERT_TRUE(space.ok());
  const auto c = space->default_candidate();
  const double before = space->estimate(c);
  constants.latency_slack *= 100;
  EXPECT_GT(space->estimate(c), before);
  constants = Constants();
  EXPECT_EQ(space->estimate(c), before);
}

TEST(Estimate, TheTableNamesEachConstantOnce) {
  std::set<std::string> names;
  for (const auto& info : constant_table()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_GT(default_constants().*info.member, 0) << info.name;
  }
  EXPECT_EQ(names.size() * sizeof(double), sizeof(Constants));
  for (const auto& info : constant_table())
    EXPECT_TRUE((std::set<std::string>{"fitted", "counted", "chosen", "seen"}).contains(info.source))
        << info.name;
}

// Rates come from the device; a device without rates gets those of a usual core.
TEST(Estimate, RatesComeFromTheDevice) {
  target::Device device;
  device.arch = "x86-64";
  const EstimateMachine usual(device, default_constants());
  EXPECT_GT(usual.rates.loads_per_cycle, 1);
  EXPECT_GT(usual.fork_seconds(), 0);
  device.cpu().rates = {
      .loads_per_cycle = 3, .fma_latency = 7, .tlb_bytes = 1 << 20, .parallel_overhead_us = 20};
  device.cacheline_bytes = 128;
  const EstimateMachine machine(device, default_constants());
  EXPECT_EQ(machine.rates.loads_per_cycle, 3);
  EXPECT_EQ(machine.rates.fma_latency, 7);
  EXPECT_EQ(machine.rates.tlb_bytes, 1 << 20);
  EXPECT_DOUBLE_EQ(machine.fork_seconds(), 20e-6);
  EXPECT_EQ(machine.line_bytes, 128);
  EXPECT_EQ(machine.rates.issue_per_cycle, usual.rates.issue_per_cycle);
}

TEST(Estimate, AStepTakesItsBottleneck) {
  target::Device device;
  device.arch = "x86-64";
  device.cpu().vector_bytes = 32;
  device.cpu().vector_registers = 16;
  device.cpu().fma_per_cycle = 2;
  EstimateMachine machine(device, default_constants());
  machine.rates.loads_per_cycle = 2;
  machine.rates.fma_latency = 4;
  RegisterTile tile;
  tile.lanes = 8;
  tile.latency = machine.rates.fma_latency;
  // A single accumulator waits for its latency; ten keep both pipes busy for about as long.
  tile.accumulators = tile.products = 1;
  const double one = step_cycles(machine, tile);
  EXPECT_GE(one, 4);
  tile.accumulators = tile.products = 10;
  EXPECT_NEAR(step_cycles(machine, tile), one, 0.1);
  tile.loads = 30;
  EXPECT_GE(step_cycles(machine, tile), 15);
  EXPECT_EQ(overlapped(10, 0, 0.2), 10);
  EXPECT_GT(overlapped(10, 10, 0.2), 10);
  EXPECT_LT(overlapped(10, 10, 0.2), 20);
}

}  // namespace
}  // namespace tensorsmith::space::estimate_test
