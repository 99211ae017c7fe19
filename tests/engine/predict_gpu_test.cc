// Predictions for GPUs that are not available, checked against data sheets and the design space.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/predict/predict.h"
#include "space/design_space.h"

namespace tensorsmith::engine::predict_gpu_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Result<Prediction> try_predict(const std::string& model, PredictOptions options) {
  ModelSource source;
  source.path = model;
  NullLogSink log;
  return predict(source, options, log);
}
Prediction predicted(const std::string& model, const std::string& device, const std::string& file = "") {
  PredictOptions options;
  options.device = device;
  options.latency_model = file;
  auto result = try_predict(model, options);
  EXPECT_TRUE(result.ok()) << result.error().message();
  return std::move(result).value();
}

// Times respect the limits of the data sheet and are the sum of the tasks.
TEST(PredictGpu, NothingIsFasterThanTheDevice) {
  for (const char* name : {"v100", "a100", "t4", "h100", "mi100"}) {
    const target::Device device = target::find_device(name).value();
    const Prediction p = predicted("zoo:resnet18:size=64", name);
    const auto& tasks = p.model.partition.tasks;
    ASSERT_EQ(p.latency.tasks.size(), tasks.size());
    double sum = 0;
    int reductions = 0;
    for (size_t t = 0; t < tasks.size(); ++t) {
      const double seconds = p.latency.tasks[t].seconds;
      // Each kernel has at least the launch overhead.
      EXPECT_GE(seconds, 1e-6 * device.launch_overhead_us) << name << " " << tasks[t].name;
      sum += tasks[t].calls * seconds;
      if (tasks[t].name.find("conv") == std::string::npos) continue;
      ++reductions;
      // Bias and activation, a few operations per element, may be fused at no cost.
      EXPECT_GE(seconds, 0.9 * tasks[t].flops / (1e9 * device.peak_f32_gflops)) << name;
    }
    EXPECT_GT(reductions, 0);
    // A launch is part of its task's time and counts once; nothing that was fitted on CPUs is
    // added.
    EXPECT_NEAR(p.latency.seconds, sum + p.latency.refill_seconds, 1e-9 * sum) << name;
    EXPECT_EQ(p.latency.launch_seconds, 0);
    double weights = 0;  // bytes
    for (const auto& value : p.model.graph.values)
      if (value.constant)
        weights += std::accumulate(value.shape.begin(), value.shape.end(), 4.0, std::multiplies<>());
    EXPECT_GT(weights, 4e7);
    if (weights > 2 * static_cast<double>(device.l2_bytes)) {
      EXPECT_GE(p.latency.seconds, 0.9 * weights / (1e9 * device.memory_bandwidth_gbs)) << name;
    }
    EXPECT_LT(p.latency.low_seconds(), p.latency.seconds);
    EXPECT_GT(p.latency.high_seconds(), 1.5 * p.latency.seconds);
    EXPECT_THAT(p.predictor, HasSubstr("the estimate of the design space"));
    EXPECT_THAT(p.notes, Contains(HasSubstr("no measurement on this device")));
  }
}

// Each task has the space's own estimate, unless another bound is larger.
TEST(PredictGpu, TasksHaveTheNumberOfTheirSpace) {
  const target::Device device = target::find_device("a100").value();
  const Prediction p = predicted("zoo:squeezenet1_1:size=64", "a100");
  for (size_t t = 0; t < p.latency.tasks.size(); ++t) {
    const auto& task = p.model.partition.tasks[t];
    const auto space = space::DesignSpace::build(task.workload, device, {});
    ASSERT_TRUE(space.ok());
    const TaskPrediction& row = p.latency.tasks[t];
    const double expected = std::max(space->estimate(space->default_candidate()), row.least_seconds);
    EXPECT_NEAR(row.seconds, expected, 1e-9 * expected) << task.name;
  }
}

TEST(PredictGpu, LongerForMoreAndShorterWhereFaster) {
  const auto seconds = [](const std::string& model, const std::string& device) {
    return predicted(model, device).latency.seconds;
  };
  const double one = seconds("zoo:resnet18", "v100");
  const double many = seconds("zoo:resnet18:batch=64", "v100");
  EXPECT_LT(2 * one, many);
  EXPECT_LT(many, 70 * one);
  EXPECT_LT(seconds("zoo:resnet18:batch=64", "h100"), many);
  EXPECT_GT(seconds("zoo:resnet18:batch=64", "k80"), many);
}

// A model for GPUs, and the roofline, which is a lower bound of all predictions.
TEST(PredictGpu, OtherPredictors) {
  const std::string model = "zoo:squeezenet1_1:size=64";
  PredictOptions options;
  options.device = "v100";
  options.roofline = true;
  const auto least = try_predict(model, options);
  ASSERT_TRUE(least.ok()) << least.error().message();
  EXPECT_THAT(least->predictor, HasSubstr("roofline"));
  EXPECT_EQ(least->latency.log_90, 0);
  EXPECT_GE(predicted(model, "v100").latency.seconds, least->latency.seconds);
  const Prediction learned =
      predicted(model, "v100", TENSORSMITH_SOURCE_DIR "/models/tensorsmith.safetensors");
  EXPECT_THAT(learned.predictor, HasSubstr("tensorsmith.safetensors"));
  EXPECT_GE(learned.latency.seconds, least->latency.seconds);
}

// On an A100, tensor cores multiply TF32 eight times as fast as lanes multiply f32; most of a
// transformer is products.
TEST(PredictGpu, Tf32TakesLessTimeThanF32) {
  ModelSource source;
  source.path = "zoo:bert_base";
  PredictOptions options;
  options.device = "a100";
  NullLogSink log;
  const auto exact = predict(source, options, log);
  source.tf32 = true;
  const auto rounded = predict(source, options, log);
  ASSERT_TRUE(exact.ok() && rounded.ok());
  EXPECT_LT(rounded->latency.seconds, 0.8 * exact->latency.seconds);
  EXPECT_GT(rounded->latency.seconds, exact->latency.seconds / 8);
  for (const char* name : {"t4", "xeon-8358", "mi100"}) {
    options.device = name;
    const auto refused = predict(source, options, log);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_THAT(refused.error().message(),
                HasSubstr(std::string("tf32: ") + name + " does not support TF32"));
  }
}

TEST(PredictGpu, WhatCannotBePredicted) {
  const auto expect_error = [](PredictOptions options, const std::string& what) {
    const auto result = try_predict("zoo:resnet18:size=64", options);
    ASSERT_FALSE(result.ok()) << what;
    EXPECT_THAT(result.error().message(), HasSubstr(what));
  };
  PredictOptions options;
  options.device = "v101";
  expect_error(options, "device 'v101'");
  options.device = "cuda:x";
  expect_error(options, "device 'cuda:x'");
  options.device = "v100";
  options.threads = 4;
  expect_error(options, "--threads 4: v100 is a GPU");
  options.threads = 0;
  options.latency_model = TENSORSMITH_SOURCE_DIR "/models/cpu.safetensors";
  expect_error(options, "was trained on CPUs only and cannot predict programs on v100, a GPU");
}

}  // namespace
}  // namespace tensorsmith::engine::predict_gpu_test
