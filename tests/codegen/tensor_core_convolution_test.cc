// Convolutions on tensor cores: a loop over the positions of the window with products over channels
// inside.
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/convolutions.h"
#include "codegen/cuda/emulated.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/gpu_runner.h"
#include "codegen/runner.h"
#include "codegen/tensor_core_testing.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "runtime/device/test_device.h"

namespace tensorsmith::test::tensor_core_convolution_test {
namespace {

using ir::DType;
using lower::Tensor;
using space::Candidate;
using space::DesignSpace;

std::vector<std::pair<std::string, Convolution>> convolutions() {
  return {
      {"3x3", {.channels_last = true}},
      {"3x3 with an epilogue", {.n = 2, .channels_last = true, .epilogue = true}},
      {"1x1 with stride 2", {.width = 40, .kernel = 1, .stride = 2, .pad = 0, .channels_last = true}},
      {"strided window", {.width = 33, .stride = 2, .channels_last = true, .epilogue = true}},
      {"tails", {.outputs = 40, .height = 9, .width = 20, .channels_last = true}},
      {"bf16", {.dtype = DType::kBF16, .kernel = 5, .pad = 2, .channels_last = true}},
      {"bytes", {.dtype = DType::kI8, .channels = 64, .channels_last = true}},
      {"channels first", {.epilogue = true}},
      {"14 x 14", {.height = 14, .width = 14, .channels_last = true, .epilogue = true}},
      {"7 x 7", {.n = 2, .channels = 64, .height = 7, .width = 7, .channels_last = true}},
      {"14 x 14, channels first", {.dtype = DType::kBF16, .height = 14, .width = 14}},
      {"7 x 7, channels first", {.n = 2, .outputs = 40, .height = 7, .width = 7, .epilogue = true}},
      {"7 x 7, bytes", {.dtype = DType::kI8, .channels = 64, .height = 7, .width = 7, .channels_last = true}},
      {"channels first, 1x1", {.n = 2, .width = 24, .kernel = 1, .pad = 0}},
      {"tf32", {.dtype = DType::kF32, .channels_last = true, .epilogue = true}},
      {"tf32, channels first", {.dtype = DType::kF32, .n = 2, .width = 20, .epilogue = true}},
      {"tf32, 7 x 7, channels first", {.dtype = DType::kF32, .n = 2, .height = 7, .width = 7}},
      {"tf32, stride 2", {.dtype = DType::kF32, .width = 33, .stride = 2, .channels_last = true}}};
}

// Sums are in another order, and outputs may have 16 bits. Values that are not rounded to TF32
// would differ by 2^-11.
std::string difference(const Convolution& c, const Tensor& got, const Tensor& expected) {
  return c.dtype == DType::kF32 ? compare(got, expected, 1e-5, 1e-5) : compare(got, expected, 1e-2, 1e-3);
}

// At most half of the tiles of 16 x 16 are tails.
Convolution random_convolution(Rng& rng) {
  Convolution c;
  c.channels_last = rng.bernoulli(0.7);
  c.epilogue = rng.bernoulli(0.5);
  constexpr DType kTypes[] = {DType::kF16, DType::kBF16, DType::kF32};
  c.dtype = kTypes[rng.below(3)];
  c.n = rng.uniform_int(1, 2);
  c.channels = 16 * rng.uniform_int(1, 3);
  c.outputs = 16 * rng.uniform_int(2, 3) - 2 * rng.uniform_int(0, 2);
  c.kernel = rng.uniform_int(1, 3);
  c.pad = rng.uniform_int(0, c.kernel / 2);
  c.stride = c.channels_last ? rng.uniform_int(1, 2) : 1;
  c.height = rng.uniform_int(3, 6) * c.stride;
  c.width = rng.uniform_int(24, 34) * c.stride;
  if (c.stride > 1 || c.kernel < 2 || rng.bernoulli(0.3)) return c;
  // As narrow as the later layers of a network: tiles are eight points wide.
  c.pad = c.kernel / 2;
  c.width = rng.bernoulli(0.5) ? rng.uniform_int(7, 8) : rng.uniform_int(12, 15);
  c.height = rng.uniform_int(6, 15);
  return c;
}

void expect_emulated(const Convolution& convolution_, uint64_t seed, const target::Device& gpu) {
  const EmulationOrder orders[] = {{false, false}, {false, true}, {true, false}, {true, true}};
  const ir::Workload workload = convolution(convolution_);
  const DesignSpace space = space_of(workload, gpu);
  const std::vector<Tensor> inputs = random_inputs(workload, seed);
  const auto expected = lower::evaluate(workload, inputs).value();
  const auto candidates = draw(space, seed, 2);
  ASSERT_FALSE(candidates.empty());
  for (const Candidate& c : candidates) {
    const ir::Program program = program_of(space, c, gpu);
    const auto source = source_of(program, gpu);
    ASSERT_TRUE(source.scalar_products.empty()) << source.scalar_products[0] << ir::print(program);
    ASSERT_EQ(source.tensor_core_nests, 1) << ir::print(program);
    const auto outputs = emulate(program, gpu, inputs, orders);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    for (const Emulated& run : *outputs)
      ASSERT_EQ(difference(convolution_, run.outputs[0], expected[0]), "")
          << sched::print(*space.to_trace(c)) << source.text;
  }
}

TEST(TensorCoreConvolutions, EmulatedWarpsComputeThem) {
  uint64_t seed = 500;
  for (const auto& [name, shape] : convolutions()) {
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    expect_emulated(shape, seed, device("a100"));
    if (HasFatalFailure()) return;
  }
}

TEST(TensorCoreConvolutions, RandomOnesOnEmulatedWarps) {
  for (uint64_t seed = 600; seed < 606; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    expect_emulated(random_convolution(rng), seed, device("a100"));
    if (HasFatalFailure()) return;
  }
}

TEST(TensorCoreConvolutions, ScalarCodeComputesThem) {
  TS_OPENCL_OR_SKIP(opencl);
  const target::Device gpu = device("a100");
  uint64_t seed = 700;
  for (const auto& [name, shape] : convolutions()) {
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    const ir::Workload workload = convolution(shape);
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs).value();
    const auto candidates = draw(space, seed, 1);
    ASSERT_FALSE(candidates.empty());
    const ir::Program program = program_of(space, candidates[0], gpu);
    const auto outputs = compile_and_run(*opencl, program, gpu_for(*opencl), inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message() << ir::print(program);
    ASSERT_EQ(difference(shape, (*outputs)[0], expected[0]), "") << ir::print(program);
  }
}

TEST(TensorCoreConvolutions, Assemble) {
  const char* folder = std::getenv("TENSORSMITH_NVRTC");
  const auto compiler = codegen::Nvrtc::open(std::vector<std::string>(folder ? 1 : 0, folder ? folder : ""));
  if (!compiler.ok()) {
    ASSERT_FALSE(std::getenv("TENSORSMITH_REQUIRE_NVRTC")) << compiler.error().message();
    GTEST_SKIP() << compiler.error().message();
  }
  for (const char* name : {"t4", "a100", "h100"}) {
    const target::Device gpu = device(name);
    for (const auto& [channels_last, side] : {std::pair(true, 32), {false, 32}, {true, 14}, {false, 7}}) {
      const Convolution shape{.channels = 64,
                              .outputs = 128,
                              .height = side,
                              .width = side,
                              .channels_last = channels_last,
                              .epilogue = true};
      SCOPED_TRACE(name + (channels_last ? std::string(", channels last, ") : ", ") + std::to_string(side) +
                   " points, seed 900");
      const DesignSpace space = space_of(convolution(shape), gpu);
      const auto candidates = draw(space, 900, 2);
      ASSERT_FALSE(candidates.empty());
      for (const Candidate& c : candidates) {
        const auto source = source_of(program_of(space, c, gpu), gpu);
        EXPECT_EQ(source.tensor_core_nests, 1) << source.text;
        const auto compiled =
            (*compiler)->compile(codegen::gpu_prelude(codegen::cuda_c()) + source.text, gpu.processor, {});
        ASSERT_TRUE(compiled.ok()) << compiled.error().message() << source.text;
      }
    }
  }
}

// Copies run ahead across positions of the window.
TEST(TensorCoreConvolutions, OnePipelineOverTheWindow) {
  const target::Device gpu = device("a100");
  const DesignSpace space = space_of(convolution({.channels_last = true}), gpu);
  int pipelines = 0;
  for (const Candidate& c : draw(space, 800, 16))
    pipelines += source_of(program_of(space, c, gpu), gpu).pipelines;
  EXPECT_GT(pipelines, 4);
}

TEST(TensorCoreConvolutions, WhereTilesFillRows) {
  const auto has_plan = [](const Convolution& c, const char* kind = kTensorCores) {
    return has_kind(space_of(convolution(c), device("a100")), kind);
  };
  constexpr const char* kTwoAxes = "tiles along two axes";
  EXPECT_TRUE(has_plan({.channels_last = true}));
  EXPECT_TRUE(has_plan({.channels_last = true}, kTwoAxes));
  EXPECT_TRUE(has_plan({.height = 7, .width = 7, .channels_last = true}, kTwoAxes));
  EXPECT_TRUE(has_plan({.height = 7, .width = 7}, kTwoAxes));
  // Too narrow, or points with stride 2: groups of eight lines would not be contiguous.
  EXPECT_FALSE(has_plan({.height = 5, .width = 5, .channels_last = true}));
  EXPECT_FALSE(has_plan({.height = 14, .width = 14, .stride = 2, .channels_last = true}));
  EXPECT_FALSE(has_plan({.width = 64, .stride = 2, .channels_last = true}, kTwoAxes));
  EXPECT_FALSE(has_plan({.channels = 3, .kernel = 7, .stride = 2, .pad = 3, .channels_last = true}));
  // Columns are points of an output row; with a stride they are not adjacent in a tile.
  EXPECT_FALSE(has_plan({.width = 64, .stride = 2}));
}

}  // namespace
}  // namespace tensorsmith::test::tensor_core_convolution_test
