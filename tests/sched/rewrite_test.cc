// The definitions that inlining, caches and rfactor leave behind compute what the workload says.
#include <gtest/gtest.h>

#include <cmath>

#include "lower/interpreter.h"
#include "support/print_schedule.h"
#include "support/random_trace.h"
#include "support/random_workload.h"
#include "support/small_workloads.h"

namespace tensorsmith::sched::rewrite_test {
namespace {

void expect_equal(const std::vector<lower::Tensor>& got, const std::vector<lower::Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].shape, expected[o].shape);
    ASSERT_EQ(got[o].dtype, expected[o].dtype);
    for (int64_t i = 0; i < got[o].num_elements(); ++i) {
      const ir::Scalar a = got[o].at(i);
      const ir::Scalar b = expected[o].at(i);
      if (!ir::is_float(got[o].dtype)) {
        ASSERT_EQ(a.i, b.i) << "output " << o << " element " << i;
      } else if (a.f != b.f && !(std::isnan(a.f) && std::isnan(b.f))) {
        ASSERT_NEAR(a.f, b.f, 1e-4 + 1e-4 * std::abs(b.f)) << "output " << o << " element " << i;
      }
    }
  }
}

TEST(Rewrite, RandomTracesKeepTheMeaning) {
  int rewritten = 0;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    Rng rng(seed);
    const ir::Workload workload = seed % 2 == 0 ? test::small::random(rng) : test::random_workload(seed);
    test::RandomTraceOptions options;
    options.proposals = 40;
    const ScheduleBuilder builder = test::random_schedule(workload, rng, options);
    bool changed = false;
    for (const Step& step : builder.trace().steps)
      changed |= std::holds_alternative<ComputeInline>(step) || std::holds_alternative<CacheRead>(step) ||
                 std::holds_alternative<CacheWrite>(step) || std::holds_alternative<Rfactor>(step) ||
                 std::holds_alternative<Winograd>(step) || std::holds_alternative<Dot>(step) ||
                 std::holds_alternative<Dot16>(step);
    if (!changed) continue;
    ++rewritten;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(builder.trace()));
    const ir::Workload result = test::workload_of(builder.schedule());
    const Status sound = ir::verify(result);
    ASSERT_TRUE(sound.ok()) << sound.error().message();
    ASSERT_EQ(result.inputs(), workload.inputs());
    std::vector<lower::Tensor> inputs;
    for (const ir::Buffer& buffer : workload.inputs())
      inputs.push_back(lower::random_tensor(buffer->dtype, buffer->shape, rng));
    const auto expected = lower::evaluate(workload, inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().message();
    const auto got = lower::evaluate(result, inputs);
    ASSERT_TRUE(got.ok()) << got.error().message();
    expect_equal(*got, *expected);
  }
  EXPECT_GT(rewritten, 3000);
}

}  // namespace
}  // namespace tensorsmith::sched::rewrite_test
