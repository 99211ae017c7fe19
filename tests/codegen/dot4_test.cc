// dot4 on each instruction set: exact for all bytes, any number of lanes, and by VNNI's instruction where,
// and only where, there is one.
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "runner.h"
#include "space/design_space.h"
#include "support/bytes.h"
#include "support/small_workloads.h"

namespace tensorsmith::test {
namespace {

using ir::DType;
using ir::Expr;

// Y[i] = sum_k dot4(A[i, k], B[k, i]), the rows in one vector.
lower::LoweredProgram rows_of_dot4(int64_t lanes, int64_t steps) {
  const auto a = ir::placeholder("A", DType::kI32, {lanes, steps});
  const auto b = ir::placeholder("B", DType::kI32, {steps, lanes});
  const ir::Var i("i"), k("k");
  const auto y = ir::compute(
      "Y", {{i, lanes}}, {{k, steps}}, ir::Combiner::kSum,
      {ir::call(ir::Intrinsic::kDot4, {ir::load(a->output(), {i, k}), ir::load(b->output(), {k, i})})});
  ir::Workload workload;
  workload.operations = {a, b, y};
  workload.outputs = y->outputs;
  sched::ScheduleBuilder builder(workload);
  EXPECT_TRUE(builder.apply(sched::Reorder{2, {1, 0}}).ok());
  if (lanes > 1) {
    EXPECT_TRUE(builder.apply(sched::Annotate{2, 1, sched::Annotation::kVectorize}).ok());
  }
  return *lower::lower(builder.schedule());
}

// This machine's variants, and each as if it lacked the instructions for dot4.
std::vector<target::Device> devices() {
  std::vector<target::Device> result;
  for (const target::Device& device : local_devices()) {
    result.push_back(device);
    for (const std::vector<std::string>& missing :
         {std::vector<std::string>{"+avx512vnni", "+avxvnni"},
          std::vector<std::string>{"+avx512vnni", "+avxvnni", "+avx512bw", "+avx2"}}) {
      target::Device& weaker = result.emplace_back(device);
      weaker.name += " without " + missing.back();
      for (const std::string& feature : missing) std::erase(weaker.features, feature);
    }
  }
  return result;
}

TEST(Dot4, IsExactForAnyNumberOfLanes) {
  Rng rng(3);
  for (const target::Device& device : devices()) {
    for (int64_t lanes = 1; lanes <= 64; lanes += lanes < 34 ? 1 : 5) {
      const auto lowered = rows_of_dot4(lanes, 5);
      std::vector<lower::Tensor> inputs;
      for (const ir::Buffer& input : lowered.program.inputs) {
        lower::Tensor words = lower::Tensor::zeros(DType::kI32, input->shape);
        for (int64_t w = 0; w < words.num_elements(); ++w) {
          int64_t word = 0;
          for (int byte = 0; byte < 4; ++byte) {
            const int64_t extremes[] = {0, 127, 128, 255, 1};
            word = word * 256 + (rng.bernoulli(0.5) ? extremes[rng.below(5)] : rng.uniform_int(0, 255));
          }
          words.set(w, ir::scalar_int(DType::kI32, word));
        }
        inputs.push_back(std::move(words));
      }
      const auto expected = lower::run(lowered.program, inputs);
      ASSERT_TRUE(expected.ok()) << expected.error().message();
      const auto got = compile_and_run(lowered.program, device, inputs);
      ASSERT_TRUE(got.ok()) << got.error().message();
      ASSERT_EQ(compare((*got)[0], (*expected)[0], 0, 0), "") << device.name << ", " << lanes << " lanes";
    }
  }
}

target::Device with_features(int vector_bytes, std::vector<std::string> features) {
  target::Device device;
  device.name = "test";
  device.arch = "x86-64";
  device.cpu = vector_bytes == 64 ? "x86-64-v4" : "x86-64-v3";
  device.vector_bytes = vector_bytes;
  device.vector_registers = vector_bytes == 64 ? 32 : 16;
  device.features = std::move(features);
  return device;
}

TEST(Dot4, IsOneInstructionWhereThereIsOne) {
  const auto assembly = [](const target::Device& device) {
    const auto text = codegen::emit_assembly(rows_of_dot4(16, 5).program, device, {});
    EXPECT_TRUE(text.ok()) << text.error().message();
    return text.ok() ? *text : "";
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::vector<std::string> avx512 = {"+sse4.2",   "+avx2",     "+avx512f",
                                           "+avx512bw", "+avx512vl", "+avx512dq"};
  std::vector<std::string> vnni = avx512;
  vnni.push_back("+avx512vnni");

  const std::string wide = assembly(with_features(64, vnni));
  EXPECT_TRUE(has(wide, "vpdpbusd") && has(wide, "%zmm")) << wide;
  EXPECT_FALSE(has(wide, "vpmaddwd")) << wide;
  const std::string without = assembly(with_features(64, avx512));
  EXPECT_FALSE(has(without, "vpdpbusd")) << without;
  EXPECT_TRUE(has(without, "vpmaddwd")) << without;
  const std::string narrow = assembly(with_features(32, {"+sse4.2", "+avx2", "+avxvnni"}));
  EXPECT_TRUE(has(narrow, "vpdpbusd")) << narrow;
  EXPECT_FALSE(has(narrow, "%zmm")) << narrow;
  const std::string avx2 = assembly(with_features(32, {"+sse4.2", "+avx2"}));
  EXPECT_FALSE(has(avx2, "vpdpbusd")) << avx2;
  EXPECT_TRUE(has(avx2, "vpmaddwd")) << avx2;
}

// Quantized products and convolutions as the design space schedules them.
TEST(Dot4, CandidatesAreExactOnEveryInstructionSet) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed);
    const ir::Workload workload =
        seed % 2 == 0 ? small::quantized_matmul(rng.uniform_int(1, 40), rng.uniform_int(1, 70),
                                                rng.uniform_int(1, 70), rng)
                      : small::quantized_conv2d(rng.uniform_int(1, 20), rng.uniform_int(3, 17),
                                                rng.uniform_int(1, 40), rng.uniform_int(1, 3),
                                                rng.uniform_int(1, 2), rng.uniform_int(0, 1), rng);
    const auto inputs = random_bytes(workload, rng);
    const auto expected = lower::evaluate(workload, inputs);
    ASSERT_TRUE(expected.ok());
    for (const target::Device& device : local_devices()) {
      const auto space = space::DesignSpace::build(workload, device, {2});
      ASSERT_TRUE(space.ok());
      for (int i = 0; i < 3; ++i) {
        const auto trace = space->to_trace(i == 0 ? space->default_candidate() : space->sample(rng));
        ASSERT_TRUE(trace.ok());
        const auto lowered = lower::lower(*sched::replay(workload, *trace));
        ASSERT_TRUE(lowered.ok()) << lowered.error().message();
        auto prepared = inputs;
        for (const auto& constant : lowered->prepared)
          prepared[constant.input] = *lower::prepare(constant, inputs[constant.input]);
        const auto got = compile_and_run(lowered->program, device, prepared);
        ASSERT_TRUE(got.ok()) << got.error().message();
        ASSERT_EQ(compare((*got)[0], (*expected)[0], 0, 0), "") << device.name << ", seed " << seed << "\n"
                                                                << sched::print(*trace);
      }
    }
  }
}

}  // namespace
}  // namespace tensorsmith::test
