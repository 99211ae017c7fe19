// Products by Hopper's warpgroups: the loop programs of the design space as scalar code in the
// reference interpreter, and as text for sm_90a with emulated instructions.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <regex>

#include "codegen/cuda/codegen.h"
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
#include "sched/device_limits.h"
#include "space/design_space.h"
#include "space/gpu_program.h"

namespace tensorsmith::test::warpgroup_test {
namespace {

using ir::DType;
using lower::Tensor;
using space::Candidate;
using space::DesignSpace;

constexpr const char* kKinds[] = {"threads",
                                  "threads, several tiles",
                                  "boxes",
                                  "boxes, several tiles",
                                  "own warp",
                                  "own warp, several tiles",
                                  "own warp, clusters",
                                  "own warp, clusters, several tiles"};

std::vector<std::pair<std::string, MatrixProduct>> products() {
  return {{"f16", {.m = 128, .n = 64, .k = 256}},
          {"tails of rows and columns", {.m = 100, .n = 56, .k = 192}},
          {"bf16 with an epilogue",
           {.a = DType::kBF16, .b = DType::kBF16, .m = 144, .n = 96, .k = 128, .epilogue = true}},
          {"B transposed", {.m = 100, .n = 192, .k = 128, .b_transposed = true}},
          {"A transposed", {.m = 192, .n = 64, .k = 160, .a_transposed = true, .epilogue = true}},
          {"batch", {.m = 64, .n = 64, .k = 128, .batch = 3}},
          {"batch of A", {.m = 104, .n = 64, .k = 128, .batch = 3, .one_b = true}},
          {"many tiles", {.m = 320, .n = 128, .k = 64}},
          {"wide", {.m = 64, .n = 256, .k = 128}},
          {"bytes", {.a = DType::kU8, .b = DType::kI8, .m = 128, .n = 64, .k = 256, .b_transposed = true}}};
}

// Few multiprocessors, so that small products have more tiles than blocks that run at once.
target::Device hopper(int cores = 1) {
  target::Device device = test::device("h100");
  if (cores > 0) {
    device.gpu().multiprocessors = cores;
    device.gpu().max_blocks_per_core = 2;
  }
  return device;
}

std::vector<Candidate> draw_warpgroups(const DesignSpace& space, uint64_t seed, size_t count) {
  return draw(space, seed, count, kWarpgroups);
}

std::string kind_of(const codegen::GpuSource& source) {
  const bool boxes = source.text.find("ts_copy_box(") != std::string::npos;
  const bool own = source.text.find("ts_arrive") != std::string::npos;
  // A loop over tiles around the loop over chunks.
  const bool persistent = std::regex_search(source.text, std::regex("for .int \\w*j_0\\w*fused_0 "));
  const bool clusters = source.text.find("__cluster_dims__") != std::string::npos;
  std::string kind = own ? "own warp" : boxes ? "boxes" : "threads";
  if (clusters) kind += ", clusters";
  return persistent ? kind + ", several tiles" : kind;
}

uint64_t seed_of(uint64_t seed) {
  const char* more = std::getenv("TENSORSMITH_GPU_SEED");
  return seed + (more != nullptr ? std::strtoull(more, nullptr, 10) : 0);
}

// The schedule, executed serially, computes the workload.
TEST(Warpgroups, ReferenceComputesTheProduct) {
  const target::Device gpu = hopper();
  uint64_t seed = seed_of(100);
  for (const auto& [name, product] : products()) {
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    if (product.m * product.n * product.k > (1 << 20)) continue;
    const ir::Workload workload = matrix_product(product);
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs).value();
    const auto candidates = draw_warpgroups(space, seed, 1);
    ASSERT_FALSE(candidates.empty());
    for (const Candidate& c : candidates) {
      const ir::Program program = program_of(space, c, gpu);
      const auto outputs = lower::run(program, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message();
      ASSERT_EQ(compare((*outputs)[0], expected[0], 1e-2, 1e-3), "") << ir::print(program);
    }
  }
}

// No candidate accidentally becomes something else, whichever threads copy.
TEST(Warpgroups, AllCandidatesAreRecognized) {
  const target::Device gpu = hopper();
  uint64_t seed = seed_of(200);
  std::map<std::string, int> kinds;
  for (const auto& [what, product] : products()) {
    SCOPED_TRACE(what + ", seed " + std::to_string(++seed));
    const DesignSpace space = space_of(matrix_product(product), gpu);
    const auto candidates = draw_warpgroups(space, seed, 30);
    ASSERT_FALSE(candidates.empty());
    for (const Candidate& c : candidates) {
      const ir::Program program = program_of(space, c, gpu);
      const auto source = source_of(program, gpu);
      const std::string trace = sched::print(*space.to_trace(c));
      ASSERT_EQ(source.warpgroup_pipelines, 1) << trace << ir::print(program) << source.text;
      ++kinds[kind_of(source)];
    }
  }
  for (const char* kind : kKinds) EXPECT_GT(kinds[kind], 2) << kind;
}

TEST(Warpgroups, EmulatedWarpgroupsComputeTheProduct) {
  const target::Device gpu = hopper();
  const EmulationOrder orders[] = {{false, false}, {false, true}, {true, false}, {true, true}};
  uint64_t seed = seed_of(300);
  std::map<std::string, int> kinds;
  for (const auto& [name, product] : products()) {
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    const ir::Workload workload = matrix_product(product);
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs).value();
    // Each kind once, and three in total, since most time is spent in the compiler.
    std::map<std::string, int> done;
    for (const Candidate& c : draw_warpgroups(space, seed, 24)) {
      const ir::Program program = program_of(space, c, gpu);
      const auto source = source_of(program, gpu);
      if (done[kind_of(source)]++ > 0 || kinds[kind_of(source)] >= 3) continue;
      ++kinds[kind_of(source)];
      const std::string text = sched::print(*space.to_trace(c)) + source.text;
      const auto outputs = emulate(program, gpu, inputs, orders);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message() << text;
      for (const Emulated& run : *outputs) {
        ASSERT_EQ(compare(run.outputs[0], expected[0], 1e-2, 1e-3), "") << text;
        ASSERT_EQ(run.broken_rules, 0) << text;
      }
    }
  }
  for (const char* kind : kKinds) EXPECT_GT(kinds[kind], 2) << kind;
}

// If a Hopper GPU is available (TENSORSMITH_TEST_GPU=cuda), all kinds of all products run on it.
TEST(Warpgroups, TheDeviceComputesTheProduct) {
  const char* api = std::getenv("TENSORSMITH_TEST_GPU");
  if (api == nullptr || std::string(api) != "cuda") GTEST_SKIP() << "TENSORSMITH_TEST_GPU is not cuda";
  TS_OPENCL_OR_SKIP(device);
  if (device->properties().compute_major != 9)
    GTEST_SKIP() << "the device is not a Hopper (compute capability 9.x)";
  const target::Device gpu = hopper();
  uint64_t seed = seed_of(600);
  for (auto [name, product] : products()) {
    product.k *= 4;
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    const ir::Workload workload = matrix_product(product);
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs).value();
    std::map<std::string, int> done;
    for (const Candidate& c : draw_warpgroups(space, seed, 60)) {
      const ir::Program program = program_of(space, c, gpu);
      const auto source = source_of(program, gpu);
      if (done[kind_of(source)]++ > 0) continue;
      const std::string text = kind_of(source) + "\n" + sched::print(*space.to_trace(c)) + source.text;
      const auto outputs = compile_and_run(*device, program, gpu, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message() << text;
      EXPECT_EQ(compare((*outputs)[0], expected[0], 1e-2, 1e-3), "") << text;
    }
  }
}

// The default schedule of a large product: one warp copies, and two warpgroups compute.
TEST(Warpgroups, DefaultsAreLargeTiles) {
  const target::Device gpu = hopper(0);
  const DesignSpace space = space_of(matrix_product({.m = 4096, .n = 4096, .k = 4096}), gpu);
  const Candidate best = space.default_candidate();
  ASSERT_TRUE(is_kind(space, best.sketch, kWarpgroups)) << space.describe(best.sketch);
  const auto source = source_of(program_of(space, best, gpu), gpu);
  const std::string text = sched::print(*space.to_trace(best)) + source.text;
  EXPECT_EQ(source.launches[0].block, (std::array<int64_t, 3>{32, 12, 1})) << text;
  EXPECT_EQ(kind_of(source).substr(0, 8), "own warp") << text;
}

// 16-bit values are stored 16 bytes at a time (quad_store.h), except where a tile exceeds the
// output, where stores are guarded.
TEST(Warpgroups, QuadsStoreWholeSectors) {
  const target::Device gpu = hopper(0);
  for (const bool whole : {true, false}) {
    int drawn = 0, quads = 0;
    // Tiles of 64 rows or more exceed the second size; most of them divide the first.
    const MatrixProduct product = {.m = whole ? 3072 : 3000, .n = 3072, .k = 1024, .epilogue = true};
    const DesignSpace space = space_of(matrix_product(product), gpu);
    for (const Candidate& c : draw_warpgroups(space, seed_of(700), 12)) {
      const auto source = source_of(program_of(space, c, gpu), gpu);
      ++drawn;
      quads += source.text.find("ts_transpose_quad") != std::string::npos ? 1 : 0;
    }
    EXPECT_GT(drawn, 5);
    EXPECT_EQ(quads > 0, whole);
    EXPECT_TRUE(!whole || 2 * quads > drawn) << quads << " of " << drawn;
  }
}

// Samples do not spill, and the compiler does not serialize the products.
TEST(Warpgroups, AssembleWithoutSpills) {
  const char* folder = std::getenv("TENSORSMITH_NVRTC");
  const auto compiler = codegen::Nvrtc::open(std::vector<std::string>(folder ? 1 : 0, folder ? folder : ""));
  if (!compiler.ok()) {
    ASSERT_FALSE(std::getenv("TENSORSMITH_REQUIRE_NVRTC")) << compiler.error().message();
    GTEST_SKIP() << compiler.error().message();
  }
  const target::Device gpu = hopper(0);
  uint64_t seed = seed_of(400);
  for (auto [what, product] : products()) {
    product.m *= 16;
    product.n *= 16;
    product.k *= 16;
    SCOPED_TRACE(what + ", seed " + std::to_string(++seed));
    const DesignSpace space = space_of(matrix_product(product), gpu);
    auto candidates = draw_warpgroups(space, seed, 3);
    ASSERT_FALSE(candidates.empty());
    if (is_kind(space, space.default_candidate().sketch, kWarpgroups))
      candidates.push_back(space.default_candidate());
    for (const Candidate& c : candidates) {
      const auto source = source_of(program_of(space, c, gpu), gpu);
      const auto compiled = (*compiler)->compile(
          codegen::gpu_prelude(codegen::cuda_c()) + source.instructions + source.text, "sm_90a", {});
      ASSERT_TRUE(compiled.ok()) << compiled.error().message() << source.instructions << source.text;
      const std::string trace = sched::print(*space.to_trace(c));
      for (const auto& kernel : compiled->kernels) {
        EXPECT_EQ(kernel.spill_store_bytes, 0) << trace << source.text;
        EXPECT_EQ(kernel.stack_bytes, 0) << trace << source.text;
        const auto& block = source.launches[0].block;
        EXPECT_LE(kernel.registers * block[0] * block[1], gpu.gpu().registers_per_block) << trace;
      }
    }
  }
}

// The device is sm_90, but the module is for sm_90a, which has these instructions.
TEST(Warpgroups, BackendCompilesForTheDevice) {
  const target::Device gpu = hopper(0);
  ASSERT_EQ(gpu.processor, "sm_90");
  const DesignSpace space = space_of(matrix_product({.m = 512, .n = 512, .k = 512}), gpu);
  const auto candidates = draw_warpgroups(space, seed_of(500), 1);
  ASSERT_FALSE(candidates.empty());
  const auto kernel = codegen::cuda_backend().compile(program_of(space, candidates[0], gpu), gpu, {});
  if (!kernel.ok() && kernel.error().code == ErrorCode::kNotFound &&
      !std::getenv("TENSORSMITH_REQUIRE_NVRTC"))
    GTEST_SKIP() << kernel.error().message();
  ASSERT_TRUE(kernel.ok()) << kernel.error().message();
  EXPECT_FALSE(kernel->object.empty());
}

TEST(Warpgroups, OnlyOnHopper) {
  for (const char* name : {"a100", "rtx4090", "t4"}) {
    auto device = target::find_device(name);
    if (!device.ok()) continue;
    const DesignSpace space = space_of(matrix_product({.m = 256, .n = 256, .k = 256}), *device);
    EXPECT_FALSE(has_kind(space, kWarpgroups)) << name;
  }
  // Rows whose length is not a multiple of 16 bytes.
  const DesignSpace odd = space_of(matrix_product({.m = 128, .n = 132, .k = 128}), hopper());
  EXPECT_FALSE(has_kind(odd, kWarpgroups));
}

}  // namespace
}  // namespace tensorsmith::test::warpgroup_test
