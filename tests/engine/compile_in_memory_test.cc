// A model in memory computes the same as the compiled model in files, and compilations share
// kernels.
#include <gtest/gtest.h>

#include <cstring>

#include "base/clock.h"
#include "cli_support.h"
#include "engine/model/compile_model.h"
#include "engine/model/model_timer.h"
#include "engine/tune/model_trials.h"
#include "engine/tune/prepare_tasks.h"

namespace tensorsmith::engine::compile_in_memory_test {
namespace {

class CompileInMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = target::find_device("local:threads=2");
    ASSERT_TRUE(device.ok());
    device_ = std::move(*device);
    ModelSource source;
    source.path = "zoo:mobilenet_v2:size=64";
    auto model = load_model(source);
    ASSERT_TRUE(model.ok()) << model.error().message();
    model_ = std::make_unique<LoadedModel>(std::move(*model));
    auto schedules = default_schedules(model_->partition, device_);
    ASSERT_TRUE(schedules.ok());
    schedules_ = std::move(*schedules);
    options_.model_name = "model";
    options_.cache = &cache_;
    load_options_.threads = 2;
  }

  Result<ModelInMemory> compile() {
    return compile_in_memory(*model_, device_, schedules_, options_, load_options_);
  }

  // Returns the model's outputs for fixed inputs.
  static std::vector<std::byte> outputs_of(runtime::Model& model) {
    ModelBuffers buffers(model, 5);
    const auto inputs = buffers.inputs();
    const auto outputs = buffers.outputs();
    EXPECT_TRUE(model.run(inputs, outputs).ok());
    std::vector<std::byte> bytes(static_cast<size_t>(model.outputs()[0].bytes()));
    std::memcpy(bytes.data(), outputs[0], bytes.size());
    return bytes;
  }

  target::Device device_;
  std::unique_ptr<LoadedModel> model_;
  std::vector<TaskSchedule> schedules_;
  BuildCache cache_;
  CompileOptions options_;
  runtime::LoadOptions load_options_;
};

TEST_F(CompileInMemory, ComputesWhatTheFilesDo) {
  auto in_memory = compile();
  ASSERT_TRUE(in_memory.ok()) << in_memory.error().message();
  // Matrix units, which a process must request, are not required if no kernel uses them.
  for (const std::string& feature : in_memory->model->description().cpu_features)
    EXPECT_FALSE(feature.starts_with("amx")) << feature;
  const testing::TemporaryDirectory directory;
  options_.directory = directory.file("compiled");
  options_.cache = nullptr;
  const Status written = compile_model(*model_, device_, schedules_, options_);
  ASSERT_TRUE(written.ok()) << written.error().message();
  const auto from_files = runtime::Model::load(options_.directory, load_options_);
  ASSERT_TRUE(from_files.ok()) << from_files.error().message();
  const auto bytes = outputs_of(*in_memory->model);
  EXPECT_EQ(bytes, outputs_of(**from_files));
  EXPECT_NE(bytes, std::vector<std::byte>(bytes.size()));
  EXPECT_EQ(in_memory->model->description().weights_bytes, (*from_files)->description().weights_bytes);
}

TEST_F(CompileInMemory, PacksAWeightOnce) {
  const WantedWeight wanted{model_->partition.calls.front().inputs.back(), nullptr, {}};
  ASSERT_TRUE(model_->graph.values[wanted.value].constant);
  const auto first = cache_.weights.get(model_->graph, std::span(&wanted, 1), 1);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(compile().ok());
  const std::vector<WantedWeight> twice{wanted, wanted};
  const auto again = cache_.weights.get(model_->graph, twice, 2);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)[0].data(), (*first)[0].data());
  EXPECT_EQ((*again)[1].data(), (*first)[0].data());
  EXPECT_EQ((*first)[0].size(), model_->graph.values[wanted.value].constant->data.size());
}

TEST_F(CompileInMemory, RefusesWhatDoesNotFit) {
  auto made = compile();
  ASSERT_TRUE(made.ok());
  const runtime::ModelDescription& description = made->model->description();
  const std::vector<TensorsmithKernel> kernels(description.calls.size(), made->kernels[0]->function());
  const auto few = runtime::Model::from_memory(description, std::span(kernels).first(1), {}, load_options_);
  EXPECT_FALSE(few.ok());
  alignas(64) std::array<std::byte, 128> storage{};
  const std::vector<runtime::WeightData> unaligned(description.weights.size(),
                                                   {"w", std::span(storage).subspan(4, 64)});
  EXPECT_FALSE(runtime::Model::from_memory(description, kernels, unaligned, load_options_).ok());
}

// Plain loops compute what the untuned schedules do, up to rounding.
TEST_F(CompileInMemory, VariantsOfAModelHaveTheSameOutputs) {
  const auto tasks = prepare_tasks(model_->partition, device_);
  ASSERT_TRUE(tasks.ok()) << tasks.error().message();
  std::vector<TaskSchedule> plain;
  bool another = false;  // the two variants are different programs
  for (size_t t = 0; t < tasks->size(); ++t) {
    plain.push_back({(*tasks)[t]->plain_trace()});
    another = another || sched::print(plain.back().trace) != sched::print(schedules_[t].trace);
  }
  EXPECT_TRUE(another);
  const SystemClock clock;
  ModelTrials trials(*model_, device_, codegen::default_backend(), 2, /*seed=*/3, clock);
  ASSERT_TRUE(trials.add(schedules_).ok());
  ASSERT_TRUE(trials.add(std::move(plain)).ok());
  const auto same = trials.compare_outputs(0), other = trials.compare_outputs(1);
  ASSERT_TRUE(same.ok() && other.ok());
  EXPECT_EQ(same->worst_absolute, 0);
  EXPECT_TRUE(other->ok) << other->detail;
  EXPECT_EQ(other->elements, 1000);
}

}  // namespace
}  // namespace tensorsmith::engine::compile_in_memory_test
