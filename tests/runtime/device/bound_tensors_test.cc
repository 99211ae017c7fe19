// Models whose inputs and outputs are buffers that the caller made with OpenCL's own calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/device/opencl_api.h"
#include "runtime/device/opencl_devices.h"
#include "runtime/device/test_device.h"
#include "runtime/model.h"

namespace tensorsmith::runtime::bound_tensors_test {
namespace {

using ::testing::HasSubstr;

constexpr size_t kCount = 256;
constexpr int64_t kBytes = kCount * sizeof(float);
constexpr std::string_view kKernels = R"(
kernel void twice(global const float* x, global float* y) { y[get_global_id(0)] = 2 * x[get_global_id(0)]; }
kernel void add(global const float* x, global const float* y, global float* z) {
  z[get_global_id(0)] = x[get_global_id(0)] + y[get_global_id(0)];
})";

// twice = 2 x, and sum = x + twice, in two calls: the second call reads the first output.
ModelDescription description() {
  const auto call = [](std::string symbol, std::vector<BufferRef> buffers) {
    CallInfo info;
    info.symbol = symbol;
    info.buffers = std::move(buffers);
    info.outputs = 1;
    Launch launch{symbol, {kCount / 64, 1, 1}, {64, 1, 1}, 0, {}};
    for (size_t b = 0; b < info.buffers.size(); ++b) launch.arguments.push_back({static_cast<int64_t>(b), 0});
    info.launches = {launch};
    info.module_bytes = static_cast<int64_t>(kKernels.size());
    return info;
  };
  ModelDescription d;
  d.name = "bound";
  d.tool_version = "test";
  d.device = "opencl";
  d.arch = "opencl";
  d.inputs = {{"x", DType::kF32, {static_cast<int64_t>(kCount)}}};
  d.outputs = {{"twice", DType::kF32, {static_cast<int64_t>(kCount)}},
               {"sum", DType::kF32, {static_cast<int64_t>(kCount)}}};
  const BufferRef x{BufferKind::kInput, 0, kBytes}, twice{BufferKind::kOutput, 0, kBytes},
      sum{BufferKind::kOutput, 1, kBytes};
  d.calls = {call("twice", {x, twice}), call("add", {x, twice, sum})};
  return d;
}

class BoundTensors : public ::testing::Test {
 protected:
  void SetUp() override {
    TS_OPENCL_OR_SKIP(gpu);
    if (gpu->properties().place.platform != &opencl_platform)
      GTEST_SKIP() << "the device is CUDA's; buffers are made by OpenCL's calls here";
    auto api = opencl::load_api("");
    ASSERT_TRUE(api.ok());
    api_ = *api;
    auto model = Model::from_modules(description(), kKernels, {}, {});
    ASSERT_TRUE(model.ok()) << model.error().message();
    model_ = std::move(model).value();
    context_ = static_cast<opencl::Context>(model_->device_context());
    queue_ = queue_of(context_);
    std::iota(x_.begin(), x_.end(), -100.0F);
  }
  void TearDown() override {
    for (const opencl::Memory memory : made_) api_->release_memory(memory);
    if (queue_) api_->release_queue(queue_);
  }

  // Returns the device that models run on: the first in the list.
  opencl::Device device() {
    const auto found = opencl::find_devices(*api_);
    EXPECT_TRUE(found.ok());
    return found->front().device;
  }
  opencl::Queue queue_of(opencl::Context context) {
    int32_t code = 0;
    const opencl::Queue queue = api_->create_queue(context, device(), 0, &code);
    EXPECT_EQ(code, 0);
    return queue;
  }
  opencl::Memory buffer(size_t bytes = kBytes) {
    int32_t code = 0;
    made_.push_back(api_->create_buffer(context_, opencl::kMemoryReadWrite, bytes, nullptr, &code));
    EXPECT_EQ(code, 0);
    return made_.back();
  }
  void write(opencl::Memory memory, const std::vector<float>& values) {
    EXPECT_EQ(api_->enqueue_write(queue_, memory, 1, 0, kBytes, values.data(), 0, nullptr, nullptr), 0);
  }
  std::vector<float> read(opencl::Memory memory) {
    std::vector<float> values(kCount);
    EXPECT_EQ(api_->enqueue_read(queue_, memory, 1, 0, kBytes, values.data(), 0, nullptr, nullptr), 0);
    return values;
  }
  void run(const void* x, void* twice, void* sum) {
    const std::vector<const void*> inputs = {x};
    const std::vector<void*> outputs = {twice, sum};
    const Status done = model_->run(inputs, outputs);
    EXPECT_TRUE(done.ok()) << done.error().message();
  }
  std::vector<float> times(float factor) const {
    std::vector<float> values = x_;
    for (float& v : values) v *= factor;
    return values;
  }

  std::shared_ptr<const opencl::Api> api_;
  std::unique_ptr<Model> model_;
  opencl::Context context_ = nullptr;
  opencl::Queue queue_ = nullptr;
  std::vector<opencl::Memory> made_;
  std::vector<float> x_ = std::vector<float>(kCount);
};

TEST_F(BoundTensors, AreReadAndWrittenInPlace) {
  const opencl::Memory x = buffer(), twice = buffer(), sum = buffer();
  ASSERT_TRUE(model_->bind_input(0, x).ok());
  ASSERT_TRUE(model_->bind_output(0, twice).ok());
  ASSERT_TRUE(model_->bind_output(1, sum).ok());
  write(x, x_);
  run(nullptr, nullptr, nullptr);
  EXPECT_EQ(read(twice), times(2));
  EXPECT_EQ(read(sum), times(3));
  // Without another bind, a run reads the present contents of the buffer.
  for (float& v : x_) v += 1;
  write(x, x_);
  run(nullptr, nullptr, nullptr);
  EXPECT_EQ(read(sum), times(3));
}

TEST_F(BoundTensors, StandBesideTensorsOfTheHost) {
  const opencl::Memory twice = buffer();
  std::vector<float> sum(kCount), copied(kCount);
  ASSERT_TRUE(model_->bind_output(0, twice).ok());
  run(x_.data(), nullptr, sum.data());
  EXPECT_EQ(read(twice), times(2));
  EXPECT_EQ(sum, times(3));
  // After the output is unbound, the buffer keeps its contents.
  ASSERT_TRUE(model_->bind_output(0, nullptr).ok());
  const std::vector<float> before = read(twice);
  for (float& v : x_) v -= 7;
  run(x_.data(), copied.data(), sum.data());
  EXPECT_EQ(copied, times(2));
  EXPECT_EQ(sum, times(3));
  EXPECT_EQ(read(twice), before);
  const std::vector<const void*> inputs = {x_.data()};
  const std::vector<void*> outputs = {nullptr, sum.data()};
  EXPECT_THAT(model_->run(inputs, outputs).error().message(), HasSubstr("output 'twice': is a null pointer"));
}

TEST_F(BoundTensors, ThatDoNotSuitAreRefused) {
  const opencl::Memory small = buffer(kBytes - 4);
  EXPECT_THAT(model_->bind_input(0, small).error().message(), HasSubstr("tensor 'x', "));
  EXPECT_THAT(model_->bind_input(0, small).error().message(),
              HasSubstr("holds 1020 bytes; the tensor has 1024"));
  EXPECT_THAT(model_->bind_output(2, small).error().message(), HasSubstr("output 2: the model has 2"));
  const opencl::Device first = device();
  int32_t code = 0;
  const opencl::Context other = api_->create_context(nullptr, 1, &first, nullptr, nullptr, &code);
  ASSERT_EQ(code, 0);
  const opencl::Memory foreign = api_->create_buffer(other, opencl::kMemoryReadWrite, kBytes, nullptr, &code);
  EXPECT_THAT(model_->bind_input(0, foreign).error().message(), HasSubstr("to another context"));
  api_->release_memory(foreign);
  api_->release_context(other);
  // None of the refused buffers was bound.
  std::vector<float> twice(kCount), sum(kCount);
  run(x_.data(), twice.data(), sum.data());
  EXPECT_EQ(sum, times(3));
}

}  // namespace
}  // namespace tensorsmith::runtime::bound_tensors_test
