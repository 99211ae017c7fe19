// Schedules of a GPU's design space compute the workload when the OpenCL device of this machine
// runs them. TENSORSMITH_GPU_SAMPLES sets the number of schedules per workload,
// TENSORSMITH_GPU_SEED the seed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/gpu_runner.h"
#include "codegen/runner.h"
#include "lower/lower.h"
#include "runtime/device/test_device.h"
#include "space/design_space.h"
#include "support/random_workload.h"
#include "support/small_workloads.h"
#include "support/standard_workloads.h"

namespace tensorsmith::gpu_space_test {
namespace {

using namespace tensorsmith::test::standard;  // NOLINT(google-build-using-namespace): workloads
using lower::Tensor;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class GpuSpace : public ::testing::Test {
 protected:
  void check_workload(runtime::Gpu& gpu, const ir::Workload& workload, uint64_t seed) {
    const target::Device device = test::gpu_for(gpu);
    const auto space = space::DesignSpace::build(workload, device, {});
    ASSERT_TRUE(space.ok()) << space.error().message();
    Rng rng(seed);
    std::vector<Tensor> inputs;
    for (const ir::Buffer& b : workload.inputs())
      inputs.push_back(lower::random_tensor(b->dtype, b->shape, rng, 3));
    const auto expected = lower::evaluate(workload, inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().message();
    const uint64_t samples = from_environment("TENSORSMITH_GPU_SAMPLES", 4);
    std::vector<space::Candidate> candidates = {space->default_candidate(), space->plain_candidate()};
    for (uint64_t i = 0; i < samples; ++i) candidates.push_back(space->sample(rng));
    for (const space::Candidate& c : candidates) {
      const auto trace = space->to_trace(c);
      ASSERT_TRUE(trace.ok()) << trace.error().message();
      SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + sched::print(*trace));
      check(gpu, device, workload, *trace, inputs, *expected);
    }
  }

 private:
  static void check(runtime::Gpu& gpu, const target::Device& device, const ir::Workload& workload,
                    const sched::Trace& trace, std::vector<Tensor> inputs,
                    const std::vector<Tensor>& expected) {
    const auto schedule = sched::replay(workload, trace);
    ASSERT_TRUE(schedule.ok()) << schedule.error().message();
    const auto lowered = lower::lower(*schedule);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message();
    for (const lower::PreparedConstant& p : lowered->prepared) {
      auto prepared = lower::prepare(p, inputs[p.input]);
      ASSERT_TRUE(prepared.ok()) << prepared.error().message();
      inputs[p.input] = std::move(*prepared);
    }
    const auto outputs = test::compile_and_run(gpu, lowered->program, device, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    ASSERT_EQ(outputs->size(), expected.size());
    for (size_t o = 0; o < expected.size(); ++o)
      EXPECT_EQ(test::compare((*outputs)[o], expected[o], 1e-4, 2e-4), "");
  }
};

TEST_F(GpuSpace, StandardWorkloads) {
  TS_OPENCL_OR_SKIP(gpu);
  Conv2d conv;
  conv.h = 7;
  conv.w = 9;
  conv.co = 6;
  Conv2d strided = conv;
  strided.stride = 2;
  Conv2d grouped = strided;
  grouped.groups = 2;
  uint64_t seed = from_environment("TENSORSMITH_GPU_SEED", 100);
  for (const auto& [name, workload] : std::vector<std::pair<std::string, ir::Workload>>{
           {"matmul", matmul(32, 32, 16)},
           {"matmul with tails", matmul(17, 33, 10)},
           {"batch_matmul", batch_matmul(3, 5, 16, 8)},
           {"dense_bias_relu", dense_bias_relu(4, 19, 12)},
           {"gemv", dense_bias_relu(1, 40, 30)},
           {"conv2d", conv2d(conv)},
           {"conv2d_bias_silu", conv2d_bias_silu(conv)},
           {"strided", conv2d_bias_relu(strided)},
           {"grouped", conv2d_bias_relu(grouped)},
           {"depthwise", depthwise_conv2d(strided)},
           {"softmax", softmax(8, 37)},
           {"row means", row_means(19, 49)},
           {"means of long rows", row_means(2, 700)},
           {"layernorm", layernorm(6, 40)},
           {"max_pool", max_pool(1, 3, 9, 9, 3, 2, 1)},
           {"elementwise", elementwise_chain(100)},
           {"int8 matmul", test::small::int8_matmul(20, 24, 32)},
           {"bf16 matmul", test::small::bf16_matmul(16, 20, 24, false)}}) {
    SCOPED_TRACE(name);
    check_workload(*gpu, workload, ++seed);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GpuSpace, RandomWorkloads) {
  TS_OPENCL_OR_SKIP(gpu);
  const uint64_t seed = from_environment("TENSORSMITH_GPU_SEED", 500);
  for (uint64_t s = seed; s < seed + 12; ++s) {
    const ir::Workload workload = test::random_workload(s);
    check_workload(*gpu, workload, s);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tensorsmith::gpu_space_test
