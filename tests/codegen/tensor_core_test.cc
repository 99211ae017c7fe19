// Products on tensor cores: the loop programs of the design space compute the workload, both as
// scalar code on another device and as text for NVIDIA's GPUs with emulated instructions.
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/convolutions.h"
#include "codegen/cuda/emulated.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/gpu/emitter.h"
#include "codegen/gpu_runner.h"
#include "codegen/matrix_products.h"
#include "codegen/runner.h"
#include "codegen/tensor_core_testing.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "runtime/device/test_device.h"
#include "space/design_space.h"

namespace tensorsmith::test::tensor_core_test {
namespace {

using ir::DType;
using lower::Tensor;
using space::Candidate;
using space::DesignSpace;

MatrixProduct tf32(MatrixProduct p) {
  p.a = p.b = DType::kF32;
  p.tf32 = true;
  return p;
}

// Sums are in another order, and outputs may have 16 bits. Values that are not rounded to TF32
// would differ by 2^-11.
std::string difference(const MatrixProduct& p, const Tensor& got, const Tensor& expected) {
  return p.tf32 ? compare(got, expected, 1e-5, 1e-5) : compare(got, expected, 1e-2, 1e-3);
}

std::vector<std::pair<std::string, MatrixProduct>> products() {
  return {{"f16", {.m = 64, .n = 64, .k = 64}},
          {"tails of rows and columns", {.m = 72, .n = 40, .k = 48}},
          {"bf16 with an epilogue",
           {.a = DType::kBF16, .b = DType::kBF16, .m = 48, .n = 96, .k = 32, .epilogue = true}},
          {"B transposed", {.m = 33, .n = 64, .k = 64, .b_transposed = true}},
          {"A transposed", {.m = 64, .n = 32, .k = 64, .a_transposed = true, .epilogue = true}},
          {"batch", {.m = 32, .n = 64, .k = 32, .batch = 3}},
          {"batch of A", {.m = 32, .n = 64, .k = 32, .batch = 3, .one_b = true}},
          {"odd rows of B", {.m = 32, .n = 34, .k = 32}},
          {"tf32", tf32({.m = 64, .n = 64, .k = 64})},
          {"tf32 with tails and an epilogue", tf32({.m = 72, .n = 40, .k = 48, .epilogue = true})},
          {"tf32, B transposed", tf32({.m = 33, .n = 64, .k = 64, .b_transposed = true})},
          {"tf32, A transposed", tf32({.m = 64, .n = 32, .k = 64, .a_transposed = true})},
          {"tf32, odd rows of B", tf32({.m = 32, .n = 34, .k = 32, .batch = 2})},
          {"bytes", {.a = DType::kU8, .b = DType::kI8, .m = 64, .n = 32, .k = 64, .b_transposed = true}}};
}

TEST(TensorCores, ScalarCodeComputesTheProduct) {
  TS_OPENCL_OR_SKIP(opencl);
  const target::Device gpu = device("a100");
  uint64_t seed = 100;
  for (const auto& [name, product] : products()) {
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    const ir::Workload workload = matrix_product(product);
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs).value();
    const auto candidates = draw(space, seed, 1);
    ASSERT_FALSE(candidates.empty());
    for (const Candidate& c : candidates) {
      const ir::Program program = program_of(space, c, gpu);
      const auto outputs = compile_and_run(*opencl, program, gpu_for(*opencl), inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message() << ir::print(program);
      ASSERT_EQ(difference(product, (*outputs)[0], expected[0]), "") << ir::print(program);
    }
  }
}

// The default schedule of a large product has the structure of hand-written kernels.
TEST(TensorCores, DefaultsAreLargeTiles) {
  for (const char* name : {"t4", "a100"}) {
    const target::Device gpu = device(name);
    const MatrixProduct product{.m = 4096, .n = 4096, .k = 4096};
    const DesignSpace space = space_of(matrix_product(product), gpu);
    const Candidate best = space.default_candidate();
    ASSERT_TRUE(is_kind(space, best.sketch, kTensorCores)) << space.describe(best.sketch);
    const auto source = source_of(program_of(space, best, gpu), gpu);
    const std::string text = name + ("\n" + sched::print(*space.to_trace(best)));
    EXPECT_LE(source.launches[0].grid[0], 4096 * 4096 / (128 * 64)) << text;
    EXPECT_GE(source.launches[0].block[1], 4) << text;
    EXPECT_EQ(source.pipelines, name == std::string("t4") ? 0 : 1) << text;
    EXPECT_NE(source.text.find("TS_COPY"), std::string::npos);
  }
}

// No candidate accidentally becomes scalar code.
TEST(TensorCores, AllCandidatesAreRecognized) {
  uint64_t seed = 200;
  size_t pipelines = 0, swizzled = 0;
  for (const char* name : {"t4", "a100", "h100"}) {
    const target::Device gpu = device(name);
    for (auto [what, product] : products()) {
      if (name == std::string("t4") && product.a != DType::kF16) continue;
      product.k *= 3;
      SCOPED_TRACE(what + " on " + name + ", seed " + std::to_string(++seed));
      const DesignSpace space = space_of(matrix_product(product), gpu);
      const auto candidates = draw(space, seed, 8);
      ASSERT_FALSE(candidates.empty());
      for (const Candidate& c : candidates) {
        const ir::Program program = program_of(space, c, gpu);
        const auto source = source_of(program, gpu);
        ASSERT_TRUE(source.scalar_products.empty()) << source.scalar_products[0] << ir::print(program);
        ASSERT_EQ(source.tensor_core_nests, 1) << ir::print(program);
        const std::string trace = sched::print(*space.to_trace(c));
        const bool several = trace.find("unroll stage=") != std::string::npos;
        // If the reduction is split, the code that adds up its parts may be unrolled, too.
        const bool one_stage = trace.find("rfactor") == std::string::npos;
        ASSERT_EQ(source.pipelines, one_stage ? several : source.pipelines) << ir::print(program);
        pipelines += static_cast<size_t>(source.pipelines);
        swizzled += source.text.find("TS_SWIZZLE(") != std::string::npos ? 1 : 0;
      }
    }
  }
  EXPECT_GT(pipelines, 20U);
  EXPECT_GT(swizzled, 20U);
}

// Tiles whose lanes do not have the rows and columns of an instruction, as in another plan.
TEST(TensorCores, OtherTilesAreScalarCode) {
  const target::Device gpu = device("a100");
  const DesignSpace space = space_of(matrix_product({.m = 64, .n = 64, .k = 64}), gpu);
  Rng rng(400);
  int refused = 0;
  for (int i = 0; i < 400 && refused < 5; ++i) {
    const Candidate c = space.sample(rng);
    if (is_kind(space, c.sketch, kTensorCores)) continue;
    const auto source = source_of(program_of(space, c, gpu), gpu);
    EXPECT_EQ(source.tensor_core_nests, 0);
    EXPECT_EQ(source.text.find("ts_mma_f16("), std::string::npos);
    refused += source.scalar_products.empty() ? 0 : 1;
    for (const std::string& why : source.scalar_products) EXPECT_FALSE(why.empty());
  }
  EXPECT_EQ(refused, 5);
}

TEST(TensorCores, EmulatedWarpsComputeTheProduct) {
  const target::Device gpu = device("a100");
  const EmulationOrder orders[] = {{false, false}, {false, true}, {true, false}, {true, true}};
  uint64_t seed = 300;
  auto all = products();
  all.emplace_back("large tiles", MatrixProduct{.m = 256, .n = 384, .k = 64});
  for (auto [name, product] : all) {
    product.k *= 3;
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    const ir::Workload workload = matrix_product(product);
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs).value();
    auto candidates = draw(space, seed, 2);
    ASSERT_FALSE(candidates.empty());
    if (product.m == 256) candidates = {space.default_candidate()};
    for (const Candidate& c : candidates) {
      const ir::Program program = program_of(space, c, gpu);
      const auto outputs = emulate(program, gpu, inputs, orders);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message();
      for (const Emulated& run : *outputs) {
        const std::string text = sched::print(*space.to_trace(c)) + source_of(program, gpu).text;
        ASSERT_EQ(difference(product, run.outputs[0], expected[0]), "") << text;
        ASSERT_EQ(run.bank_conflicts, 0) << text;
        ASSERT_EQ(run.broken_rules, 0) << text;
      }
    }
  }
}

// Small outputs of long reductions: partial reductions are separate products, also in a
// convolution.
TEST(TensorCores, PartsOfReductions) {
  const target::Device gpu = device("a100");
  const EmulationOrder orders[] = {{false, false}, {true, true}};
  uint64_t seed = 500;
  const ir::Workload workloads[] = {
      matrix_product({.m = 32, .n = 32, .k = 512, .epilogue = true}),
      matrix_product(
          {.a = DType::kBF16, .b = DType::kBF16, .m = 33, .n = 32, .k = 256, .b_transposed = true}),
      convolution({.channels = 128, .height = 7, .width = 7, .channels_last = true, .epilogue = true})};
  for (const ir::Workload& workload : workloads) {
    SCOPED_TRACE("seed " + std::to_string(++seed));
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs).value();
    const auto candidates = draw(space, seed, 2, "parts: tensor cores");
    ASSERT_FALSE(candidates.empty());
    for (const Candidate& c : candidates) {
      const ir::Program program = program_of(space, c, gpu);
      const auto source = source_of(program, gpu);
      const std::string text = sched::print(*space.to_trace(c)) + source.text;
      ASSERT_EQ(source.tensor_core_nests, 1) << text;
      const auto outputs = emulate(program, gpu, inputs, orders);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message();
      for (const Emulated& run : *outputs)
        ASSERT_EQ(compare(run.outputs[0], expected[0], 1e-2, 1e-3), "") << text;
    }
  }
}

// The plan's estimate of registers agrees with the assembler: the first samples do not spill.
TEST(TensorCores, AssembleWithoutSpills) {
  const char* folder = std::getenv("TENSORSMITH_NVRTC");
  const auto compiler = codegen::Nvrtc::open(std::vector<std::string>(folder ? 1 : 0, folder ? folder : ""));
  if (!compiler.ok()) {
    ASSERT_FALSE(std::getenv("TENSORSMITH_REQUIRE_NVRTC")) << compiler.error().message();
    GTEST_SKIP() << compiler.error().message();
  }
  for (const char* name : {"t4", "a100"}) {
    const target::Device gpu = device(name);
    for (auto [what, product] : products()) {
      if (name == std::string("t4") && product.a != DType::kF16) continue;
      product.m *= 32;
      product.n *= 32;
      product.k *= 32;
      SCOPED_TRACE(what + " on " + name);
      const DesignSpace space = space_of(matrix_product(product), gpu);
      const Candidate best = space.default_candidate();
      EXPECT_TRUE(is_kind(space, best.sketch, kTensorCores));
      const auto source = source_of(program_of(space, best, gpu), gpu);
      const auto compiled =
          (*compiler)->compile(codegen::gpu_prelude(codegen::cuda_c()) + source.text, gpu.processor, {});
      ASSERT_TRUE(compiled.ok()) << compiled.error().message() << source.text;
      for (const auto& kernel : compiled->kernels) {
        const std::string trace = sched::print(*space.to_trace(best));
        EXPECT_EQ(kernel.spill_store_bytes, 0) << trace << source.text;
        EXPECT_EQ(kernel.stack_bytes, 0) << trace << source.text;
      }
    }
  }
}

// No tensor cores round f32 as f32 does, except for values rounded to TF32; V100 lacks the shapes
// of mma.sync.
TEST(TensorCores, OnlyWhereTheyRoundAlike) {
  const auto has_plan = [](const MatrixProduct& p, const char* name) {
    const DesignSpace space = space_of(matrix_product(p), device(name));
    for (size_t s = 0; s < space.num_sketches(); ++s)
      if (space.describe(static_cast<int>(s)).find("tensor cores") != std::string::npos) return true;
    return false;
  };
  const MatrixProduct f16, bf16{.a = DType::kBF16, .b = DType::kBF16};
  EXPECT_TRUE(has_plan(f16, "t4"));
  EXPECT_TRUE(has_plan(f16, "a100"));
  EXPECT_TRUE(has_plan(f16, "h100"));
  EXPECT_FALSE(has_plan(f16, "v100"));
  EXPECT_FALSE(has_plan(f16, "mi100"));
  EXPECT_TRUE(has_plan(bf16, "a100"));
  EXPECT_FALSE(has_plan(bf16, "t4"));
  EXPECT_FALSE(has_plan({.a = DType::kF32, .b = DType::kF32}, "a100"));
  EXPECT_TRUE(has_plan(tf32({}), "a100"));
  EXPECT_TRUE(has_plan(tf32({}), "h100"));
  EXPECT_FALSE(has_plan(tf32({}), "t4"));
  EXPECT_FALSE(has_plan({.k = 40}, "a100"));
  EXPECT_TRUE(has_plan(tf32({.k = 40}), "a100"));
  // Bytes of B that are not contiguous along the reduction are not supported.
  EXPECT_FALSE(has_plan({.a = DType::kI8, .b = DType::kI8}, "a100"));
  EXPECT_TRUE(has_plan({.a = DType::kI8, .b = DType::kI8, .b_transposed = true}, "a100"));
}

}  // namespace
}  // namespace tensorsmith::test::tensor_core_test
