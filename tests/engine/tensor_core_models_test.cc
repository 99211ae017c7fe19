// Convolutions of ONNX models of f16, bf16 and, on request, f32 use tensor cores: from the file
// through the graph to the design space, whose schedules run with emulated instructions and are
// compiled by NVRTC.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <utility>

#include "../graph/onnx_model_builder.h"
#include "base/scratch_directory.h"
#include "codegen/cuda/emulated.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/runner.h"
#include "codegen/tensor_core_testing.h"
#include "engine/model/load_model.h"
#include "ir/text.h"

namespace tensorsmith::test::tensor_core_models_test {
namespace {

using graph::testing::ModelBuilder;
using lower::Tensor;
using space::DesignSpace;

constexpr int kF32 = 1, kF16 = 10, kBF16 = 16;  // ONNX data types

std::string random_bytes(int64_t elements, int data_type, Rng& rng) {
  std::string bytes;
  const ir::DType dtype = data_type == kF32   ? ir::DType::kF32
                          : data_type == kF16 ? ir::DType::kF16
                                              : ir::DType::kBF16;
  const Tensor values = lower::random_tensor(dtype, {elements}, rng);
  bytes.assign(reinterpret_cast<const char*>(values.data.data()), values.data.size());
  return bytes;
}

// 3x3 with a border of 1, a bias and Relu, then 3x3 whose result is added to the input.
ModelBuilder residual_block(int data_type, int64_t channels, int64_t height, int64_t width, Rng& rng) {
  ModelBuilder model;
  model.input("x", {1, channels, height, width}, data_type).output("y");
  for (const char* name : {"w1", "w2"})
    model.raw(name, {channels, channels, 3, 3}, data_type,
              random_bytes(channels * channels * 9, data_type, rng));
  model.raw("b", {channels}, data_type, random_bytes(channels, data_type, rng));
  model.node("Conv", {"x", "w1", "b"}, {"c1"}).ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c1"}, {"r1"});
  model.node("Conv", {"r1", "w2"}, {"c2"}).ints("pads", {1, 1, 1, 1});
  model.node("Add", {"c2", "x"}, {"a"}).node("Relu", {"a"}, {"y"});
  return model;
}

// Returns the tasks of the model that have a plan for tensor cores on the device.
std::vector<graph::Task> tensor_core_tasks(const ModelBuilder& model, const target::Device& gpu, bool tf32) {
  const auto scratch = ScratchDirectory::create("tensor_core_models").value();
  const std::string path = scratch.file("model.onnx");
  std::ofstream(path, std::ios::binary) << model.bytes();
  auto loaded = engine::load_model({.path = path, .tf32 = tf32}, gpu);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  std::vector<graph::Task> found;
  if (!loaded.ok()) return found;
  for (graph::Task& task : loaded->partition.tasks)
    if (has_kind(space_of(task.workload, gpu), kTensorCores)) found.push_back(std::move(task));
  return found;
}

TEST(TensorCoreModels, EmulatedWarpsComputeThem) {
  const EmulationOrder orders[] = {{false, false}, {true, true}};
  uint64_t seed = 40;
  for (const char* name : {"a100", "h100"}) {
    for (const int data_type : {kF16, kBF16, kF32}) {
      SCOPED_TRACE(std::string(name) + ", type " + std::to_string(data_type) + ", seed " +
                   std::to_string(++seed));
      const target::Device gpu = device(name);
      Rng rng(seed);
      const auto tasks =
          tensor_core_tasks(residual_block(data_type, 32, 16, 20, rng), gpu, data_type == kF32);
      ASSERT_EQ(tasks.size(), 2U);
      for (const graph::Task& task : tasks) {
        SCOPED_TRACE(task.name);
        const std::vector<Tensor> inputs = random_inputs(task.workload, seed);
        const auto expected = lower::evaluate(task.workload, inputs).value();
        const DesignSpace space = space_of(task.workload, gpu);
        const auto candidates = draw(space, seed, 1);
        ASSERT_FALSE(candidates.empty());
        const ir::Program program = program_of(space, candidates[0], gpu);
        const auto source = source_of(program, gpu);
        ASSERT_EQ(source.tensor_core_nests, 1) << ir::print(program);
        const auto outputs = emulate(program, gpu, inputs, orders);
        ASSERT_TRUE(outputs.ok()) << outputs.error().message();
        for (const Emulated& run : *outputs)
          ASSERT_EQ(compare(run.outputs[0], expected[0], data_type == kF32 ? 1e-5 : 1e-2,
                            data_type == kF32 ? 1e-4 : 1e-3),
                    "")
              << sched::print(*space.to_trace(candidates[0])) << source.text;
      }
    }
  }
}

// f32 is computed exactly as f32 unless TF32 is requested.
TEST(TensorCoreModels, Tf32IsAskedFor) {
  Rng rng(60);
  const ModelBuilder model = residual_block(kF32, 32, 16, 20, rng);
  EXPECT_EQ(tensor_core_tasks(model, device("a100"), false).size(), 0U);
  EXPECT_EQ(tensor_core_tasks(model, device("a100"), true).size(), 2U);
}

TEST(TensorCoreModels, Assemble) {
  const char* folder = std::getenv("TENSORSMITH_NVRTC");
  const auto compiler = codegen::Nvrtc::open(std::vector<std::string>(folder ? 1 : 0, folder ? folder : ""));
  if (!compiler.ok()) {
    ASSERT_FALSE(std::getenv("TENSORSMITH_REQUIRE_NVRTC")) << compiler.error().message();
    GTEST_SKIP() << compiler.error().message();
  }
  const std::pair<const char*, int> cases[] = {
      {"t4", kF16}, {"a100", kF16}, {"h100", kF16}, {"a100", kF32}, {"h100", kF32}};
  for (const auto& [name, data_type] : cases) {
    SCOPED_TRACE(name + (", type " + std::to_string(data_type)));
    const target::Device gpu = device(name);
    Rng rng(70);
    const ModelBuilder model = residual_block(data_type, 64, 56, 56, rng);
    const auto tasks = tensor_core_tasks(model, gpu, data_type == kF32);
    ASSERT_EQ(tasks.size(), 2U);
    for (const graph::Task& task : tasks) {
      SCOPED_TRACE(task.name + ", seed 70");
      const DesignSpace space = space_of(task.workload, gpu);
      const auto candidates = draw(space, 70, 1);
      ASSERT_FALSE(candidates.empty());
      const auto source = source_of(program_of(space, candidates[0], gpu), gpu);
      EXPECT_EQ(source.tensor_core_nests, 1) << source.text;
      const auto compiled =
          (*compiler)->compile(codegen::gpu_prelude(codegen::cuda_c()) + source.text, gpu.processor, {});
      ASSERT_TRUE(compiled.ok()) << compiled.error().message() << source.text;
    }
  }
}

}  // namespace
}  // namespace tensorsmith::test::tensor_core_models_test
