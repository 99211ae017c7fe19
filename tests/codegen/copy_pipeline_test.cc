// Scalar code whose tile copies run ahead: the text for NVIDIA's GPUs computes the workload, with
// emulated asynchronous copies.
#include <gtest/gtest.h>

#include <optional>

#include "codegen/convolutions.h"
#include "codegen/cuda/emulated.h"
#include "codegen/matrix_products.h"
#include "codegen/runner.h"
#include "codegen/tensor_core_testing.h"
#include "ir/text.h"
#include "lower/lower.h"

namespace tensorsmith::test::copy_pipeline_test {
namespace {

using ir::DType;
using lower::Tensor;
using space::Candidate;
using space::DesignSpace;

constexpr const char* kTiles = "SSSRRSRS";
constexpr DType kF32 = DType::kF32;

std::vector<std::pair<std::string, ir::Workload>> workloads() {
  return {
      {"product", matrix_product({.a = kF32, .b = kF32, .m = 96, .n = 64, .k = 64})},
      {"tails", matrix_product({.a = kF32, .b = kF32, .m = 50, .n = 36, .k = 60})},
      {"batch of A transposed",
       matrix_product({.a = kF32, .b = kF32, .m = 32, .n = 48, .k = 40, .batch = 3, .a_transposed = true})},
      {"3x3 with padding",
       convolution(
           {.dtype = kF32, .channels = 12, .outputs = 16, .height = 9, .width = 14, .epilogue = true})},
      {"3x3 with stride", convolution({.dtype = kF32, .channels = 6, .outputs = 16, .stride = 2})},
      {"1x1, channels last", convolution({.dtype = kF32, .kernel = 1, .pad = 0, .channels_last = true})}};
}

bool has_stages(const DesignSpace& space, const Candidate& c) {
  return sched::print(*space.to_trace(c)).find("unroll stage=") != std::string::npos;
}

TEST(CopyPipelines, EmulatedCopiesAheadComputeTheSame) {
  const target::Device gpu = device("h100");
  const EmulationOrder orders[] = {{false, false}, {false, true}, {true, false}, {true, true}};
  uint64_t seed = 100;
  int ahead = 0;
  for (const auto& [name, workload] : workloads()) {
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs).value();
    int tried = 0;
    for (const Candidate& c : draw(space, seed, 60, kTiles)) {
      if (!has_stages(space, c)) continue;
      if (++tried > 4) break;
      const ir::Program program = program_of(space, c, gpu);
      const auto source = source_of(program, gpu);
      const std::string text = sched::print(*space.to_trace(c)) + ir::print(program) + source.text;
      ASSERT_EQ(source.pipelines, 1) << text;
      ahead += source.text.find("TS_COPY_AHEAD") != std::string::npos ? 1 : 0;
      const auto outputs = emulate(program, gpu, inputs, orders);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message() << text;
      for (const Emulated& run : *outputs)
        ASSERT_EQ(compare(run.outputs[0], expected[0], 1e-4, 1e-4), "") << text;
    }
    EXPECT_GT(tried, 2);
  }
  EXPECT_GT(ahead, 10);
}

// Returns the candidate with both factors in shared memory, with a loop over the reduction or
// without; nothing if a thread has too few sums.
std::optional<Candidate> with_sums(const DesignSpace& space, Candidate c, bool unrolled) {
  constexpr int64_t kFewestSums = 16;
  constexpr size_t kSpatialParts = 4;  // virtual threads, threads, outer, inner
  int64_t sums = 1;
  size_t at = 0;
  for (const auto& slot : space.slots(c.sketch)) {
    const bool lengths = slot.kind == space::DecisionKind::kTileLengths;
    if (lengths && slot.parts == kSpatialParts)
      sums *= c.decisions[at] * c.decisions[at + 2] * c.decisions[at + 3];
    if (slot.name.ends_with(".unroll")) c.decisions[at] = unrolled ? 3 : 0;
    if (slot.name.find(".shared.") != std::string::npos && !slot.name.ends_with(".align") &&
        !slot.name.ends_with(".vectorize"))
      c.decisions[at] = 1;
    at += lengths ? slot.parts : 1;
  }
  return sums >= kFewestSums ? std::optional(std::move(c)) : std::nullopt;
}

// Sums in pairs of registers, which are used if the reduction has a loop, have the same values, bit
// for bit, as the unrolled nest, whose sums are single variables.
TEST(CopyPipelines, SumsInPairsOfRegistersAreTheSame) {
  const target::Device gpu = device("h100");
  const EmulationOrder orders[] = {{false, false}};
  uint64_t seed = 500;
  auto tiled = workloads();
  tiled.resize(3);  // the remaining convolutions' factors are rounded to TF32
  tiled.emplace_back(
      "both transposed",
      matrix_product(
          {.a = kF32, .b = kF32, .m = 64, .n = 64, .k = 24, .a_transposed = true, .b_transposed = true}));
  for (const auto& [name, workload] : tiled) {
    SCOPED_TRACE(name + ", seed " + std::to_string(++seed));
    const DesignSpace space = space_of(workload, gpu);
    const std::vector<Tensor> inputs = random_inputs(workload, seed);
    int compared = 0;
    for (const Candidate& drawn : draw(space, seed, 1500, kTiles)) {
      const auto rolled = with_sums(space, drawn, false), unrolled = with_sums(space, drawn, true);
      if (compared == 2) break;
      if (!rolled || !space.check(*rolled).ok() || !space.check(*unrolled).ok() ||
          !has_stages(space, *rolled))
        continue;
      const ir::Program in_pairs = program_of(space, *rolled, gpu), plain = program_of(space, *unrolled, gpu);
      const std::string text = source_of(in_pairs, gpu).text;
      const auto has_pairs = [](const std::string& of) {
        return of.find("ts_add_products") != std::string::npos;
      };
      // Tile rows that begin at odd places have no vectors; long reductions have a loop in any
      // case.
      if (!has_pairs(text) || has_pairs(source_of(plain, gpu).text)) continue;
      ++compared;
      const auto pairs = emulate(in_pairs, gpu, inputs, orders), single = emulate(plain, gpu, inputs, orders);
      ASSERT_TRUE(pairs.ok() && single.ok()) << text;
      ASSERT_EQ(compare((*pairs)[0].outputs[0], (*single)[0].outputs[0], 0, 0), "") << text;
    }
    EXPECT_EQ(compared, 2);
  }
}

// Devices without asynchronous copies have no such decision.
TEST(CopyPipelines, OlderDevicesHaveNone) {
  const DesignSpace space = space_of(workloads()[0].second, device("t4"));
  for (const Candidate& c : draw(space, 200, 40, kTiles)) EXPECT_FALSE(has_stages(space, c));
}

}  // namespace
}  // namespace tensorsmith::test::copy_pipeline_test
