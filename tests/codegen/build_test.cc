#include "codegen/build.h"

#include <gtest/gtest.h>

#include "support/small_workloads.h"
#include "target/target.h"

namespace tensorsmith::codegen::build_test {
namespace {

sched::Trace trace(const std::string& text) { return sched::parse_trace(text).value(); }

TEST(Build, MakesCodeOfATrace) {
  const target::Device device = target::probe_local().value();
  const auto built = build(test::small::matmul(8, 8, 8), trace("unroll stage=2 max_step=4\n"), device,
                           default_backend(), {.symbol = "product"});
  ASSERT_TRUE(built.ok()) << built.error().message();
  EXPECT_EQ(built->lowered.program.name, "product");
  EXPECT_EQ(built->kernel.symbol, "product");
  EXPECT_TRUE(default_backend().load(built->kernel.object, "product").ok());
}

// Errors are exactly those of the failing step, and tell which step it was.
TEST(Build, SaysWhichStepFailed) {
  const target::Device device = target::probe_local().value();
  const ir::Workload workload = test::small::matmul(8, 8, 8);
  BuildStep step = BuildStep::kCompile;
  const sched::Trace wrong = trace("unroll stage=9 max_step=4\n");
  const auto not_replayed = build(workload, wrong, device, default_backend(), {}, &step);
  ASSERT_FALSE(not_replayed.ok());
  EXPECT_EQ(step, BuildStep::kReplay);
  EXPECT_EQ(not_replayed.error().message(), sched::replay(workload, wrong).error().message());

  const CodegenOptions options{.symbol = "no name"};
  const auto not_compiled = build(workload, {}, device, default_backend(), options, &step);
  ASSERT_FALSE(not_compiled.ok());
  EXPECT_EQ(step, BuildStep::kCompile);
  const auto lowered = lower::lower(sched::replay(workload, {}).value(), options.symbol);
  EXPECT_EQ(not_compiled.error().message(),
            default_backend().compile(lowered->program, device, options).error().message());
}

}  // namespace
}  // namespace tensorsmith::codegen::build_test
