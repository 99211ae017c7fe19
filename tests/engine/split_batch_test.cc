// Compiled models of batches that run in parts compute the same as those that run as a whole.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "cli_support.h"
#include "engine/model/compile_model.h"
#include "engine/model/model_timer.h"

namespace tensorsmith::engine::split_batch_test {
namespace {

class SplitBatchOf : public ::testing::TestWithParam<const char*> {
 protected:
  // Returns the outputs for fixed inputs.
  std::vector<float> outputs_of(const LoadedModel& model) {
    auto schedules = default_schedules(model.partition, *device_);
    TS_CHECK(schedules.ok(), "no schedules");
    BuildCache cache;
    CompileOptions options;
    options.model_name = "model";
    options.cache = &cache;
    runtime::LoadOptions load_options;
    load_options.threads = 2;
    auto compiled = compile_in_memory(model, *device_, *schedules, options, load_options);
    TS_CHECK(compiled.ok(), compiled.ok() ? "" : compiled.error().message());
    ModelBuffers buffers(*compiled->model, 5);
    const auto inputs = buffers.inputs();
    const auto outputs = buffers.outputs();
    EXPECT_TRUE(compiled->model->run(inputs, outputs).ok());
    std::vector<float> values;
    for (size_t o = 0; o < outputs.size(); ++o) {
      const size_t begin = values.size();
      values.resize(begin + static_cast<size_t>(compiled->model->outputs()[o].bytes()) / sizeof(float));
      std::memcpy(values.data() + begin, outputs[o], (values.size() - begin) * sizeof(float));
    }
    return values;
  }

  Result<target::Device> device_ = target::find_device("local:threads=2");
};

TEST_P(SplitBatchOf, ComputesTheSame) {
  ASSERT_TRUE(device_.ok());
  ModelSource source;
  source.path = GetParam();
  auto model = load_model(source);
  ASSERT_TRUE(model.ok()) << model.error().message();
  const std::vector<float> expected = outputs_of(*model);
  const size_t calls = model->partition.calls.size();
  ASSERT_TRUE(graph::split_batch(model->graph, model->partition, 4));
  model->memory = graph::plan_memory(model->graph, model->partition);
  EXPECT_EQ(model->partition.calls.size(), 4 * calls);
  const std::vector<float> got = outputs_of(*model);
  ASSERT_EQ(got.size(), expected.size());
  float largest = 0, difference = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(expected[i] - got[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(difference, 1e-4F * largest);
}

INSTANTIATE_TEST_SUITE_P(Networks, SplitBatchOf,
                         ::testing::Values("zoo:mobilenet_v2:size=64:batch=8",
                                           "zoo:bert_tiny:sequence=32:batch=4"));

// Six megabytes per image; a GPU's kernels stay large.
TEST(SplitBatch, PartsFitTheCaches) {
  ModelSource source;
  source.path = "zoo:mobilenet_v2:batch=32";
  target::Device device;
  device.l3_bytes = 64 << 20;
  device.figures = target::GpuFigures{.multiprocessors = 2};
  const auto whole = load_model(source, device);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  device.figures = target::CpuFigures{.cores = 2};
  const auto parts = load_model(source, device);
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  EXPECT_EQ(parts->partition.calls.size(), 8 * whole->partition.calls.size());
  EXPECT_LT(parts->memory.arena_bytes, whole->memory.arena_bytes / 7);
}

}  // namespace
}  // namespace tensorsmith::engine::split_batch_test
