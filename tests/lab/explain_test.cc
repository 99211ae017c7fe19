// Explanations for programs whose measured time contradicts the device's rates or the program's
// counters.
#include "lab/explain.h"

#include <gmock/gmock.h>

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
  EXPECT_TRUE(memory.exceeds(explained->best_seconds));
  EXPECT_EQ(memory.busy_share(explained->best_seconds), 1);
  EXPECT_THAT(explained->sentences, Contains(HasSubstr("busy for 100 %")));
  // The explanation gives the reason, with the part and the amount.
  EXPECT_THAT(explained->sentences,
              Contains(::testing::AllOf(HasSubstr("reads from memory would take up to 105 %"),
                                        HasSubstr("device file"))));
}

TEST(Explain, WhatFitsNeedsNoReason) {
  const auto explained = explain(programs(0.8), "softmax");
  ASSERT_TRUE(explained.ok()) << explained.error().message();
  EXPECT_NEAR(explained->best[explained->limit].busy_share(explained->best_seconds), 0.8, 1e-9);
  EXPECT_THAT(explained->sentences, Each(Not(HasSubstr("impossible"))));
}

}  // namespace
}  // namespace tensorsmith::lab::explain_test
