// Properties of design spaces over many workloads.
#include <gtest/gtest.h>

#include <set>

#include "space/design_space.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::space {
namespace {

using namespace test::standard;

target::Device small_device(int vector_bytes = 32) {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.vector_bytes = vector_bytes;
  d.vector_registers = vector_bytes == 64 ? 32 : 16;
  d.fma_per_cycle = 2;
  d.cores = 2;
  return d;
}

std::vector<std::pair<std::string, ir::Workload>> workloads() {
  Conv2d conv;
  conv.h = 7;
  conv.w = 9;
  conv.co = 6;
  Conv2d strided = conv;
  strided.stride = 2;
  Conv2d pointwise = conv;
  pointwise.kh = pointwise.kw = 1;
  pointwise.pad = 0;
  return {{"matmul", matmul(17, 33, 10)},
          {"batch_matmul", batch_matmul(3, 5, 16, 8)},
          {"dense_bias_relu", dense_bias_relu(4, 19, 12)},
          {"conv2d", conv2d(conv)},
          {"conv2d_bias_relu", conv2d_bias_relu(conv)},
          {"strided", conv2d_bias_relu(strided)},
          {"pointwise", conv2d_bias_relu(pointwise)},
          {"depthwise", depthwise_conv2d(conv)},
          {"softmax", softmax(5, 37)},
          {"layernorm", layernorm(6, 40)}};
}

DesignSpace build(const ir::Workload& workload, int threads = 2, int vector_bytes = 32) {
  auto space = DesignSpace::build(workload, small_device(vector_bytes), {threads});
  EXPECT_TRUE(space.ok()) << space.error().message();
  return *space;
}

void expect_replays(const DesignSpace& space, const Candidate& c, const std::string& what) {
  auto trace = space.to_trace(c);
  ASSERT_TRUE(trace.ok()) << what << ": " << trace.error().message();
  auto schedule = sched::replay(space.workload(), *trace);
  ASSERT_TRUE(schedule.ok()) << what << " " << space.describe(c.sketch) << ": " << schedule.error().message()
                             << "\n"
                             << sched::print(*trace);
  auto bounds = sched::infer_bounds(*schedule);
  ASSERT_TRUE(bounds.ok()) << what << ": " << bounds.error().message() << "\n" << sched::to_string(*schedule);
}

TEST(DesignSpace, SampledTracesReplayOnStandardWorkloads) {
  for (const auto& [name, workload] : workloads()) {
    for (int threads : {1, 2}) {
      const auto space = build(workload, threads);
      Rng rng(5);
      expect_replays(space, space.default_candidate(), name);
      for (int i = 0; i < 60; ++i) {
        Candidate c = space.sample(rng);
        EXPECT_TRUE(space.check(c).ok());
        expect_replays(space, c, name);
        c = space.mutate(c, rng);
        expect_replays(space, c, name);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(DesignSpace, SampledTracesReplayOnRandomWorkloads) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto space = build(test::random_workload(seed));
    Rng rng(seed);
    expect_replays(space, space.default_candidate(), "default");
    for (int i = 0; i < 6; ++i) {
      expect_replays(space, space.sample(rng), "sample");
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tensorsmith::space
