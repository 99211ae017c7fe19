// Whole-model predictions: the replay with a fake latency model, and the command.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli_support.h"
#include "engine/predict/predict_model.h"

namespace tensorsmith::tools::predict_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_cli;

// Predicts a millisecond for every task, with the given error; refuses some tasks.
class Pretending final : public learn::CostModel {
 public:
  Result<std::vector<learn::Prediction>> predict(
      std::span<const learn::ProgramQuery> queries) const override {
    // Stores and models do not call this machine "local".
    for (const auto& query : queries) EXPECT_NE(query.device->name, "local");
    std::vector<learn::Prediction> out;
    for (const auto& query : queries) {
      EXPECT_GT(query.leaves->vectors.rows, 0);
      EXPECT_NE(query.trace, nullptr);
      if (query.workload->key == refused)
        return Error{ErrorCode::kInvalidArgument, "", "never seen such a task"};
      const bool endless = query.workload->key == cannot_run;
      out.push_back({endless ? std::numeric_limits<double>::infinity() : task_seconds, log_sigma});
      out.back().log_90 = log_90;
    }
    return out;
  }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string&) const override { return {}; }

  std::string refused, cannot_run;
  double log_sigma = 0, log_90 = 0, task_seconds = 1e-3;

 private:
  learn::ModelCard card_;
};

class PredictModel : public ::testing::Test {
 protected:
  PredictModel() {
    engine::ModelSource options;
    options.path = "zoo:squeezenet1_1:size=64";
    auto loaded = engine::load_model(options);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message();
    model_ = std::move(*loaded);
    device_ = target::find_device("xeon-8358:threads=4").value();
    device_.l3_bytes = int64_t{1} << 40;  // holds everything
    schedules_ = engine::default_schedules(model_.partition, device_).value();
  }
  engine::ModelPrediction predict(const learn::CostModel* latency_model, double cache_retention = 1) {
    auto prediction = engine::predict_model(model_, device_, schedules_, latency_model, cache_retention);
    EXPECT_TRUE(prediction.ok()) << prediction.error().message();
    return *prediction;
  }
  double calls() const { return static_cast<double>(model_.partition.calls.size()); }

  engine::LoadedModel model_;
  target::Device device_;
  std::vector<engine::TaskSchedule> schedules_;
  Pretending pretending_;
};

TEST_F(PredictModel, CallsRunOneAfterTheOther) {
  device_.launch_overhead_us = 5;
  const auto p = predict(&pretending_);
  EXPECT_NEAR(p.seconds, calls() * (1e-3 + 5e-6), 1e-9);
  EXPECT_NEAR(p.launch_seconds, calls() * 5e-6, 1e-12);
  EXPECT_EQ(p.refill_seconds, 0);
  ASSERT_EQ(p.calls.size(), model_.partition.calls.size());
  for (size_t c = 0; c < p.calls.size(); ++c)
    EXPECT_NEAR(p.calls[c].start_seconds, static_cast<double>(c) * 1.005e-3 + 5e-6, 1e-9);
  EXPECT_NEAR(p.calls.back().start_seconds + p.calls.back().seconds, p.seconds, 1e-9);
}

TEST_F(PredictModel, DataComeFromMemoryWhereTheCachesLoseThem) {
  device_.l3_bytes = int64_t{4} << 20;  // all weights together do not fit
  device_.memory_bandwidth_gbs = 10;
  const auto bytes_of = [&](graph::ValueId id) {
    const auto& value = model_.graph.values[id];
    return std::accumulate(value.shape.begin(), value.shape.end(), 4.0, std::multiplies<>());  // all are f32
  };
  double weights = 0, values = 0, inputs = 0;  // weights and values of calls that fit into a quarter of the
                                               // cache; inputs of all calls
  size_t larger = 0;
  for (const auto& call : model_.partition.calls) {
    double of_weights = 0, of_inputs = 0, of_values = bytes_of(call.outputs.at(0));
    for (const auto id : call.inputs) {
      const bool given = id == model_.graph.inputs.at(0);
      (model_.graph.values[id].constant ? of_weights : given ? of_inputs : of_values) += bytes_of(id);
    }
    inputs += of_inputs;
    if (of_weights + of_inputs + of_values > 1 << 20) {
      ++larger;
      continue;
    }
    weights += of_weights;
    values += of_values;
  }
  EXPECT_GT(weights, 1e6);
  EXPECT_GT(larger, 0);
  auto p = predict(&pretending_);
  EXPECT_NEAR(p.refill_seconds, (weights + 8 * inputs) / 1e10, 1e-9);
  EXPECT_NEAR(p.seconds, calls() * 1e-3 + p.refill_seconds, 1e-9);
  // Other programs take half of the cache in 2 ms; a call of the run takes 1 ms.
  const double taken = 1 - std::pow(0.5, calls() / 2);
  EXPECT_NEAR(predict(&pretending_, 0.5).refill_seconds, (weights + 8 * inputs + taken * values / 4) / 1e10,
              1e-9);
  device_.memory_bandwidth_gbs = 0;  // unknown: no guess
  EXPECT_EQ(predict(&pretending_).refill_seconds, 0);

  // A cache that holds the whole model, unshared and shared.
  device_.l3_bytes = int64_t{64} << 20;
  device_.memory_bandwidth_gbs = 10;
  EXPECT_EQ(predict(&pretending_).refill_seconds, 0);
  EXPECT_GT(predict(&pretending_, 0.5).refill_seconds, taken * weights / 1e10);
}

TEST_F(PredictModel, ErrorsOfTasksDoNotCancel) {
  pretending_.log_sigma = 0.2;
  // The errors of all tasks together, combined with the run's own error.
  EXPECT_NEAR(predict(&pretending_).log_sigma, std::hypot(0.2, 0.07), 1e-9);
  pretending_.log_sigma = 0;  // unknown
  EXPECT_EQ(predict(&pretending_).log_sigma, 0);
}

TEST_F(PredictModel, IntervalsHaveTheModelsTails) {
  pretending_.log_sigma = 0.2;
  EXPECT_NEAR(predict(&pretending_).log_90, 1.6449 * std::hypot(0.2, 0.07), 1e-6);
  pretending_.log_90 = 1;
  const auto p = predict(&pretending_);
  EXPECT_NEAR(p.log_90, std::hypot(1.0, 1.6449 * 0.07), 1e-6);
  EXPECT_NEAR(p.high_seconds(), p.seconds * std::exp(p.log_90), 1e-9);
  EXPECT_GE(p.low_seconds(), p.least_seconds);
  // If the error of one task is unknown, so is that of the run.
  pretending_.refused = model_.partition.tasks[0].key;
  EXPECT_EQ(predict(&pretending_).log_90, 0);
}

// Whatever the model predicts, neither a task nor the run is faster than the device allows.
TEST_F(PredictModel, NothingIsFasterThanTheDevice) {
  pretending_.task_seconds = 1e-12;
  auto p = predict(&pretending_);
  // At the highest clock.
  const double peak =
      device_.peak_f32_gflops * 1e9 * std::max(device_.boost_clock_ghz / device_.clock_ghz, 1.0);
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    EXPECT_GE(p.tasks[t].seconds, p.tasks[t].least_seconds);
    EXPECT_TRUE(p.tasks[t].raised);
  }
  // Without Winograd, convolutions take the operations of their definition.
  engine::ScheduleOptions direct;
  direct.winograd = false;
  schedules_ = engine::default_schedules(model_.partition, device_, direct).value();
  p = predict(&pretending_);
  double reductions = 0;
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    if (model_.partition.tasks[t].name.find("conv") == std::string::npos) continue;
    const double flops = model_.partition.tasks[t].flops;
    // Bias and activation, a few operations per element, are not counted.
    EXPECT_GE(p.tasks[t].seconds, 0.9 * flops / peak) << model_.partition.tasks[t].name;
    reductions += flops * model_.partition.tasks[t].calls;
  }
  EXPECT_GE(p.seconds, 0.9 * reductions / peak);
  EXPECT_GE(p.seconds, p.least_seconds);
  // The run as a whole: weights that do not fit the caches come from memory.
  device_.l2_bytes = 1 << 17;
  device_.l3_bytes = 1 << 20;
  device_.memory_bandwidth_gbs = 0.1;
  double bytes = 0;
  for (const auto& value : model_.graph.values) {
    if (!value.constant) continue;
    bytes += std::accumulate(value.shape.begin(), value.shape.end(), 4.0, std::multiplies<>());
  }
  p = predict(&pretending_);
  EXPECT_GE(p.seconds, 0.95 * bytes / 1e8);
  // The bound does not change predictions above it.
  pretending_.task_seconds = 1;
  EXPECT_FALSE(predict(&pretending_).tasks[0].raised);
}

TEST_F(PredictModel, NoTaskCountsAsZero) {
  pretending_.refused = model_.partition.tasks[0].key;
  pretending_.cannot_run = model_.partition.tasks[1].key;
  const auto p = predict(&pretending_);
  EXPECT_THAT(p.tasks[0].roofline_because, HasSubstr("never seen such a task"));
  EXPECT_THAT(p.tasks[1].roofline_because, HasSubstr("cannot run"));
  EXPECT_EQ(p.tasks[2].roofline_because, "");
  const auto roofline = predict(nullptr);
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    EXPECT_GT(roofline.tasks[t].seconds, 0);
    EXPECT_EQ(p.tasks[t].seconds, t < 2 ? roofline.tasks[t].seconds : 1e-3);
  }
}

TEST(PredictCommand, AnyCpu) {
  const auto result = run_cli({"predict", "zoo:squeezenet1_1:size=64", "--device", "xeon-8358", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  double sum = 0;
  for (const auto& call : json["calls"]) sum += call["seconds"].get<double>();
  EXPECT_NEAR(json["seconds"].get<double>(), sum + json["launch_seconds"].get<double>(), 1e-9);
  EXPECT_GT(sum, 0);
  EXPECT_EQ(json["device"]["name"], "xeon-8358");
  EXPECT_EQ(json["tasks"][0]["schedule"], "untuned");

  const auto table = run_cli({"predict", "zoo:squeezenet1_1:size=64", "--untuned", "--model", "none"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("predicted time of a run on local: "));
  EXPECT_THAT(table.out, HasSubstr("by the roofline"));
  // No prediction is below the roofline, the least time that the figures allow.
  const auto least =
      run_cli({"predict", "zoo:squeezenet1_1:size=64", "--device", "xeon-8358", "--model", "none", "--json"});
  ASSERT_EQ(least.exit_code, 0) << least.err;
  const auto bound = nlohmann::json::parse(least.out);
  for (size_t t = 0; t < bound["tasks"].size(); ++t)
    EXPECT_GE(json["tasks"][t]["seconds"].get<double>(), bound["tasks"][t]["seconds"].get<double>());
  EXPECT_GE(json["seconds"].get<double>(), bound["seconds"].get<double>());

  // The shipped model.
  const auto shipped = run_cli({"predict", "zoo:squeezenet1_1:size=64", "--untuned"});
  ASSERT_EQ(shipped.exit_code, 0) << shipped.err;
  EXPECT_THAT(shipped.out, HasSubstr("cpu.safetensors (tensorsmith)"));
  EXPECT_THAT(shipped.out, Not(HasSubstr("(roofline): ")));
}

// Whatever the shipped model has not seen is named and widens the interval.
TEST(PredictCommand, SaysWhatIsUnseen) {
  const std::vector<std::string> command = {"predict", "zoo:squeezenet1_1", "--device", "xeon-8358",
                                            "--untuned"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = command;
    all.insert(all.end(), more.begin(), more.end());
    const auto result = run_cli(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  };
  const auto text = with({});
  EXPECT_THAT(text.out,
              HasSubstr("note: the model was not trained on xeon-8358, only on emeraldrapids-avx2-1t"));
  EXPECT_THAT(
      text.err,
      HasSubstr("tensorsmith: warning: this prediction is for 32 threads, but the model was trained only "
                "on runs with 1 or 2 threads"));
  const auto whole = nlohmann::json::parse(with({"--json"}).out);
  EXPECT_EQ(whole["unseen"],
            nlohmann::json::parse(R"({"device":true,"threads":true,"kind":false,"size":false})"));
  EXPECT_EQ(whole["notes"].size(),
            text.out.find("tasks the model predicted less") == std::string::npos ? 2u : 3u);
  EXPECT_EQ(whole["warnings"].size(), 1U);
  EXPECT_GT(whole["high_seconds"].get<double>(), 2 * whole["seconds"].get<double>());
  EXPECT_GE(whole["low_seconds"].get<double>(), whole["least_seconds"].get<double>());
  // Fewer threads do not change the certainty.
  const auto one = nlohmann::json::parse(with({"--threads", "1", "--json"}).out);
  EXPECT_EQ(one["unseen"]["threads"], false);
  EXPECT_TRUE(one["warnings"].empty());
  EXPECT_NEAR(one["log_sigma"].get<double>(), whole["log_sigma"].get<double>(), 0.1);
  // Other models know this CPU, but not programs of our design space.
  const std::string ansor = TENSORSMITH_SOURCE_DIR "/models/tensorsmith.safetensors";
  const auto kinds = nlohmann::json::parse(with({"--model", ansor, "--json"}).out);
  EXPECT_EQ(kinds["unseen"],
            nlohmann::json::parse(R"({"device":false,"threads":false,"kind":true,"size":false})"));
  EXPECT_GT(kinds["log_sigma"].get<double>(), 0.3);
}

// Attributes that a device file omits are assumed and reported; the decisive ones must be present.
TEST(PredictCommand, DeviceFilesThatLeaveFiguresOut) {
  testing::TemporaryDirectory folder;
  const std::string path = folder.file("board.json");
  const auto predict = [&](const nlohmann::json& device) {
    std::ofstream(path) << device.dump();
    return run_cli({"predict", "zoo:squeezenet1_1:size=64", "--device", path, "--untuned", "--json"});
  };
  auto device = nlohmann::json::parse(target::to_json(target::find_device("epyc-7452").value()));
  device["name"] = "board";
  const auto whole = predict(device);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_TRUE(nlohmann::json::parse(whole.out)["assumed"].empty());
  auto some = device;
  for (const char* name : {"l1_bytes", "l2_bytes", "memory_bandwidth_gbs"}) some.erase(name);
  const auto assumed = predict(some);
  ASSERT_EQ(assumed.exit_code, 0) << assumed.err;
  EXPECT_EQ(nlohmann::json::parse(assumed.out)["assumed"],
            nlohmann::json::parse(R"({"l1_bytes":"32768","l2_bytes":"262144","memory_bandwidth_gbs":"20"})"));
  EXPECT_THAT(
      assumed.err,
      HasSubstr("the description of board lacks attributes; assumed values: l1_bytes 32768, l2_bytes 262144, "
                "memory_bandwidth_gbs 20"));
  for (const char* name : {"cores", "clock_ghz"}) {
    auto without = device;
    without.erase(name);
    without["peak_f32_gflops"] = name == std::string("cores") ? without["peak_f32_gflops"].get<double>() /
                                                                    device["cores"].get<double>()
                                                              : 0;
    if (name == std::string("clock_ghz"))
      for (const char* clock : {"base_clock_ghz", "boost_clock_ghz"}) without.erase(clock);
    const auto refused = predict(without);
    EXPECT_EQ(refused.exit_code, 1) << name;
    EXPECT_THAT(refused.err, HasSubstr("board.json: attribute '" + std::string(name) + "' is missing"));
  }
}

// Predicts for a GPU that is not present (tests/engine/predict_gpu_test.cc checks the numbers).
TEST(PredictCommand, GpusByTheEstimate) {
  const auto table = run_cli({"predict", "zoo:squeezenet1_1:size=64", "--device", "v100"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("by the estimate of the design space for GPUs"));
  EXPECT_THAT(table.out, HasSubstr("note: the prediction is an estimate that was made to rank schedules"));
  const auto least = run_cli({"predict", "zoo:squeezenet1_1:size=64", "--device", "v100", "--model", "none"});
  ASSERT_EQ(least.exit_code, 0) << least.err;
  EXPECT_THAT(least.out, HasSubstr("by the roofline"));
}

TEST(PredictCommand, WhatCannotBePredicted) {
  const auto expect_error = [](const std::vector<std::string>& arguments, const std::string& what) {
    const auto result = run_cli(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr(what));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  expect_error({"predict", "zoo:resnet18:size=64", "--device", "v101"}, "device 'v101'");
  expect_error({"predict", "zoo:resnet18:size=64", "--device", "cuda:x"}, "device 'cuda:x'");
  expect_error({"predict", "zoo:resnet18:size=64", "--device", "v100", "--threads", "4"},
               "--threads 4: v100 is a GPU");
  const std::string cpus = TENSORSMITH_SOURCE_DIR "/models/cpu.safetensors";
  expect_error({"predict", "zoo:resnet18:size=64", "--device", "v100", "--model", cpus},
               "cpu.safetensors: was trained on CPUs only and cannot predict programs on v100, a GPU");
  expect_error({"predict", "zoo:resnet18:size=64", "--model", "none.model"}, "none.model");
  expect_error({"predict", "none.onnx"}, "none.onnx");
  expect_error({"predict", "zoo:resnet18:size=64", "--device", "xeon-8358", "--threads", "1000"},
               "--threads 1000: xeon-8358 has 32 cores");
  expect_error({"devices", "show", "v100", "--probe"}, "--probe");
}

}  // namespace
}  // namespace tensorsmith::tools::predict_test
