// Explanations for programs whose measured time contradicts the device's rates or the program's
// counters.
#include "lab/explain.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/rng.h"
#include "feature/profile_schema.h"
#include "target/assumed.h"

namespace tensorsmith::lab::explain_test {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// Programs whose reads from memory alone take `memory_share` of their time at the device's
// bandwidth.
learn::ProfiledPrograms programs(double memory_share) {
  learn::ProfiledPrograms out;
  out.device = target::with_assumed_figures(target::find_device("epyc-9654:threads=1").value());
  const double bytes_a_second = 1e9 * out.device.memory_bandwidth_gbs;
  out.tasks.push_back({"key", "softmax", "", 1e6, {}});
  Rng rng(1);
  for (size_t i = 0; i < 2 * kFewestPrograms; ++i) {
    learn::ProfiledProgram program;
    program.seconds = 1e-3 * (1 + rng.uniform());
    for (const auto& column : feature::kCpuProfileCounts) program.counters[column.name()] = 0;
    for (const char* name : {"arithmetic_bytes", "hot_code", "workspace_bytes", "buffer_bytes"})
      program.counters[name] = 64;
    program.counters["instructions"] = 1e3;
    program.counters["accesses"] = 1e3;
    program.counters["l3.misses"] =
        memory_share * program.seconds * bytes_a_second / out.device.cacheline_bytes;
    const auto row = feature::cpu_profile_row(program.counters, 1e6);
    EXPECT_TRUE(row.ok());
    program.profile = *row;
    out.programs.push_back(std::move(program));
  }
  return out;
}

TEST(Explain, NothingIsBusyForMoreThanTheWholeTime) {
  const auto explained = explain(programs(1.05), "softmax");
  ASSERT_TRUE(explained.ok()) << explained.error().message();
  const Demand& memory = explained->best[explained->limit];
  EXPECT_EQ(memory.part, "reads from memory");
  EXPECT_NEAR(memory.seconds, explained->best_seconds, 1e-15);
  EXPECT_NEAR(memory.busy_share(explained->best_seconds), 1, 1e-12);
  EXPECT_NEAR(unexplained_seconds(explained->best, explained->best_seconds), 0, 1e-15);
  EXPECT_THAT(explained->sentences, Contains(HasSubstr("busy for 100 %")));
  // The explanation gives the reason, with the part and the amount.
  EXPECT_THAT(explained->sentences,
              Contains(::testing::AllOf(HasSubstr("reads from memory (by 1.05)"), HasSubstr("device file"))));
  EXPECT_THAT(explained->sentences, Each(Not(HasSubstr("105 %"))));
}

// Both programs get one factor: reads from memory take twice the share of the fastest program, also where
// they would take more than all of it.
TEST(Explain, WhatIsTooLongKeepsItsRatio) {
  learn::ProfiledPrograms data = programs(0.6);
  std::stable_sort(data.programs.begin(), data.programs.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  data.programs.front().counters["l3.misses"] *= 2;  // 120 % of the time
  const auto explained = explain(data, "softmax");
  ASSERT_TRUE(explained.ok()) << explained.error().message();
  const size_t memory = explained->limit;
  EXPECT_EQ(explained->best[memory].part, "reads from memory");
  EXPECT_NEAR(explained->best[memory].busy_share(explained->best_seconds), 1, 1e-9);
  EXPECT_NEAR(explained->typical[memory].busy_share(explained->typical_seconds), 0.5, 1e-9);
  EXPECT_NEAR(unexplained_seconds(explained->typical, explained->typical_seconds),
              0.5 * explained->typical_seconds, 1e-12);
}

TEST(Explain, WhatFitsNeedsNoReason) {
  const auto explained = explain(programs(0.8), "softmax");
  ASSERT_TRUE(explained.ok()) << explained.error().message();
  EXPECT_NEAR(explained->best[explained->limit].busy_share(explained->best_seconds), 0.8, 1e-9);
  EXPECT_THAT(explained->sentences, Each(Not(HasSubstr("impossible"))));
  EXPECT_THAT(explained->sentences, Contains(HasSubstr("do not explain the other 20 %")));
  EXPECT_NEAR(unexplained_seconds(explained->best, explained->best_seconds), 0.2 * explained->best_seconds,
              1e-9);
}

}  // namespace
}  // namespace tensorsmith::lab::explain_test
