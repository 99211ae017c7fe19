// Products by Hopper's warpgroups: the loop programs of the design space, as scalar code of the reference interpreter and as
// the text for sm_90a, whose instructions are emulated.
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
#include "ir/text.h"
#include "lower/lower.h"
#include "runtime/device/test_device.h"
#include "sched/device_limits.h"
#include "space/design_space.h"
#include "space/gpu_program.h"

namespace tensorsmith::test {
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
constexpr const char* kDescription = "warpgroups ";

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

// With few multiprocessors, so that small products have more tiles than blocks run at a time.
target::Device hopper(int cores = 1) {
  auto found = target::find_device("h100");
  EXPECT_TRUE(found.ok());
  target::Device device = found.ok() ? *found : target::Device{};
  if (cores > 0) {
    device.cores = cores;
    device.max_blocks_per_core = 2;
  }
  return device;
}

DesignSpace space_of(const ir::Workload& workload, const target::Device& gpu) {
  auto built = DesignSpace::build(workload, gpu, {});
  EXPECT_TRUE(built.ok()) << built.error().message();
  return *built;
}

bool is_ours(const DesignSpace& space, const Candidate& c) {
  return space.describe(c.sketch).find(kDescription) != std::string::npos;
}

std::vector<Candidate> draw(const DesignSpace& space, uint64_t seed, size_t count) {
  Rng rng(seed);
  std::vector<Candidate> found;
  for (int i = 0; i < 600 && found.size() < count; ++i) {
    Candidate c = space.sample(rng);
    if (is_ours(space, c)) found.push_back(std::move(c));
  }
  return found;
}

ir::Program program_of(const DesignSpace& space, const Candidate& c, const target::Device& gpu) {
  const auto trace = space.to_trace(c);
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  const auto schedule = sched::replay(space.workload(), *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.error().message() << sched::print(*trace);
  const auto bounds = sched::infer_bounds(*schedule);
  EXPECT_TRUE(bounds.ok()) << bounds.error().message();
  const Status limits = sched::check_device_limits(*schedule, *bounds, gpu);
  EXPECT_TRUE(limits.ok()) << limits.error().message() << sched::print(*trace);
  const auto lowered = lower::lower(*schedule);
  EXPECT_TRUE(lowered.ok()) << lowered.error().message();
  EXPECT_EQ(broken_gpu_rule(lowered->program), "") << ir::print(lowered->program);
  return lowered->program;
}

codegen::GpuSource source_of(const ir::Program& program, const target::Device& gpu) {
  auto source = codegen::emit_gpu(program, gpu, {}, codegen::cuda_c());
  EXPECT_TRUE(source.ok()) << source.error().message() << ir::print(program);
  return source.ok() ? std::move(source).value() : codegen::GpuSource{};
}

std::string kind_of(const codegen::GpuSource& source) {
  const bool boxes = source.text.find("ts_copy_box(") != std::string::npos;
  const bool own = source.text.find("ts_arrive") != std::string::npos;
  // A loop over tiles, around that over chunks.
  const bool persistent = std::regex_search(source.text, std::regex("for .int \\w*j_0\\w*fused_0 "));
  const bool clusters = source.text.find("__cluster_dims__") != std::string::npos;
  std::string kind = own ? "own warp" : boxes ? "boxes" : "threads";
  if (clusters) kind += ", clusters";
  return persistent ? kind + ", several tiles" : kind;
}

std::vector<Tensor> random_inputs(const ir::Workload& workload, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const ir::Buffer& b : workload.inputs())
    inputs.push_back(lower::random_tensor(b->dtype, b->shape, rng, 4));
  return inputs;
}

uint64_t seed_of(uint64_t seed) {
  const char* more = std::getenv("TENSORSMITH_GPU_SEED");
  return seed + (more != nullptr ? std::strtoull(more, nullptr, 10) : 0);
}

// The serial meaning of a schedule is the workload's.
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
    const auto candidates = draw(space, seed, 1);
    ASSERT_FALSE(candidates.empty());
    for (const Candidate& c : candidates) {
      const ir::Program program = program_of(space, c, gpu);
      const auto outputs = lower::run(program, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message();
      ASSERT_EQ(compare((*outputs)[0], expected[0], 1e-2, 1e-3), "") << ir::print(program);
    }
  }
}

// No candidate is anything else by mistake, whoever copies.
TEST(Warpgroups, AllCandidatesAreRecognized) {
  const target::Device gpu = hopper();
  uint64_t seed = seed_of(200);
  std::map<std::string, int> kinds;
  for (const auto& [what, product] : products()) {
    SCOPED_TRACE(what + ", seed " + std::to_string(++seed));
    const DesignSpace space = space_of(matrix_product(product), gpu);
    const auto candidates = draw(space, seed, 12);
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
    // Each kind once, and three times in all: the time is the compiler's.
    std::map<std::string, int> done;
    for (const Candidate& c : draw(space, seed, 24)) {
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

// With a Hopper at hand (TENSORSMITH_TEST_GPU=cuda), all kinds of all products run on it.
TEST(Warpgroups, TheDeviceComputesTheProduct) {
  const char* api = std::getenv("TENSORSMITH_TEST_GPU");
  if (api == nullptr || std::string(api) != "cuda") GTEST_SKIP() << "TENSORSMITH_TEST_GPU is not cuda";
  TS_OPENCL_OR_SKIP(device);
  if (device->properties().compute_major != 9) GTEST_SKIP() << "no Hopper";
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
    for (const Candidate& c : draw(space, seed, 60)) {
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

// An untuned product of large matrices: a warp that copies, two warpgroups that compute.
TEST(Warpgroups, DefaultsAreLargeTiles) {
  const target::Device gpu = hopper(0);
  const DesignSpace space = space_of(matrix_product({.m = 4096, .n = 4096, .k = 4096}), gpu);
  const Candidate best = space.default_candidate();
  ASSERT_TRUE(is_ours(space, best)) << space.describe(best.sketch);
  const auto source = source_of(program_of(space, best, gpu), gpu);
  const std::string text = sched::print(*space.to_trace(best)) + source.text;
  EXPECT_EQ(source.launches[0].block, (std::array<int64_t, 3>{32, 12, 1})) << text;
  EXPECT_EQ(kind_of(source).substr(0, 8), "own warp") << text;
}

// What is drawn does not spill, and the compiler has no products wait for each other.
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
    auto candidates = draw(space, seed, 3);
    ASSERT_FALSE(candidates.empty());
    if (is_ours(space, space.default_candidate())) candidates.push_back(space.default_candidate());
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
        EXPECT_LE(kernel.registers * block[0] * block[1], gpu.registers_per_block) << trace;
      }
    }
  }
}

// A device says sm_90; the module is for sm_90a, which these instructions are of.
TEST(Warpgroups, BackendCompilesForTheDevice) {
  const target::Device gpu = hopper(0);
  ASSERT_EQ(gpu.cpu, "sm_90");
  const DesignSpace space = space_of(matrix_product({.m = 512, .n = 512, .k = 512}), gpu);
  const auto candidates = draw(space, seed_of(500), 1);
  ASSERT_FALSE(candidates.empty());
  const auto kernel = codegen::cuda_backend().compile(program_of(space, candidates[0], gpu), gpu, {});
  if (!kernel.ok() && kernel.error().code == ErrorCode::kNotFound) GTEST_SKIP() << kernel.error().message();
  ASSERT_TRUE(kernel.ok()) << kernel.error().message();
  EXPECT_FALSE(kernel->object.empty());
}

TEST(Warpgroups, OnlyOnHopper) {
  for (const char* name : {"a100", "rtx4090", "t4"}) {
    auto device = target::find_device(name);
    if (!device.ok()) continue;
    const DesignSpace space = space_of(matrix_product({.m = 256, .n = 256, .k = 256}), *device);
    for (size_t s = 0; s < space.num_sketches(); ++s)
      EXPECT_EQ(space.describe(static_cast<int>(s)).find(kDescription), std::string::npos) << name;
  }
  // Rows of an odd number of 16-byte chunks' parts.
  const DesignSpace odd = space_of(matrix_product({.m = 128, .n = 132, .k = 128}), hopper());
  for (size_t s = 0; s < odd.num_sketches(); ++s)
    EXPECT_EQ(odd.describe(static_cast<int>(s)).find(kDescription), std::string::npos);
}

}  // namespace
}  // namespace tensorsmith::test
