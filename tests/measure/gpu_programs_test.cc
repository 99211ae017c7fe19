// Programs of the design spaces of GPUs, from the trace to a time on an OpenCL device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "codegen/backend.h"
#include "measure/device_measurer.h"
#include "runtime/device/test_device.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::measure::gpu_programs_test {
namespace {

using namespace tensorsmith::test::standard;

class PrintingSink final : public LogSink {
 public:
  void log(LogLevel level, std::string_view message) override {
    if (level >= LogLevel::kWarning) ADD_FAILURE() << message;
  }
};

// Limits of a usual GPU, as far as the device has them.
target::Device device_of(const runtime::GpuProperties& p) {
  target::Device d;
  d.name = "opencl:0";
  d.figures = target::GpuFigures{};
  d.arch = "opencl";
  d.gpu().multiprocessors = std::max(p.multiprocessors, 1);
  d.clock_ghz = 1;
  d.gpu().registers_per_thread = 255;
  d.gpu().warp_size = 32;
  d.gpu().max_threads_per_block = std::min(256, p.max_threads_per_block);
  d.gpu().shared_memory_per_block = std::min<int64_t>(48 << 10, p.shared_memory_per_block);
  d.gpu().registers_per_block = 65536;
  d.gpu().max_vthread_extent = 8;
  return d;
}

std::vector<std::pair<std::string, ir::Workload>> workloads() {
  Conv2d conv;
  conv.h = 7;
  conv.w = 9;
  conv.co = 6;
  return {{"matmul with tails", matmul(33, 47, 21)},
          {"dense", dense_bias_relu(4, 64, 40)},
          {"convolution", conv2d_bias_relu(conv)},
          {"softmax", softmax(8, 37)},
          {"layernorm", layernorm(6, 40)},
          {"elementwise", elementwise_chain(1000)},
          // The expected output of this one is computed by a compiled program.
          {"large matmul", matmul(160, 192, 128)}};
}

TEST(GpuPrograms, AreRightAndTimed) {
  TS_OPENCL_OR_SKIP(gpu);
  const target::Device device = device_of(gpu->properties());
  MeasureOptions options;
  options.run_timeout_s = 60;  // the device is a processor that other programs use
  options.hopeless_factor = 0;
  options.max_repeats = 3;
  options.backend = codegen::backend_for(device).value();
  PrintingSink log;
  auto measurer =
      make_device_measurer(device, {{&runtime::opencl_platform, 0}, ""}, options, {WORKER_PROGRAM}, log);
  ASSERT_TRUE(measurer.ok()) << measurer.error().message();
  uint64_t seed = 40;
  for (const auto& [name, workload] : workloads()) {
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    const auto space = space::DesignSpace::build(workload, device, {});
    ASSERT_TRUE(space.ok()) << space.error().message();
    Rng rng(seed);
    std::vector<MeasureRequest> candidates;
    std::vector<space::Candidate> chosen = {space->default_candidate()};
    for (int i = 0; i < 3; ++i) chosen.push_back(space->sample(rng));
    for (const auto& candidate : chosen) {
      auto trace = space->to_trace(candidate);
      ASSERT_TRUE(trace.ok()) << trace.error().message();
      candidates.push_back({std::move(*trace), {}});
    }
    const auto results = (*measurer)->measure(workload, candidates, 0, nullptr);
    ASSERT_TRUE(results.ok()) << results.error().message();
    ASSERT_EQ(results->size(), candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) {
      const record::MeasureResult& result = (*results)[i];
      // The shared memory of a whole kernel is known only after lowering.
      if (i > 0 && result.reason.find("a block needs") != std::string::npos) continue;
      EXPECT_TRUE(result.ok()) << record::to_string(result.outcome) << ": " << result.reason << "\n"
                               << sched::print(candidates[i].trace);
      EXPECT_GT(result.best_estimate(), 0);
    }
  }
}

}  // namespace
}  // namespace tensorsmith::measure::gpu_programs_test
