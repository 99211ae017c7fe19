// dot4, dot2i16 and dot2 on each instruction set: for all elements and any number of lanes, using
// the instructions of VNNI and AVX-512 BF16 if, and only if, they are available.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/llvm/codegen.h"
#include "ir/scalar.h"
#include "lower/lower.h"
#include "runner.h"
#include "space/design_space.h"
#include "support/bytes.h"
#include "support/small_workloads.h"

namespace tensorsmith::test::dot_test {
namespace {

using ir::DType;
using ir::Expr;

using ir::Intrinsic;

// Y[i] = sum_k dot(A[i, k], B[k, i]), the rows in one vector.
lower::LoweredProgram rows_of(Intrinsic dot, int64_t lanes, int64_t steps) {
  const auto a = ir::placeholder("A", DType::kI32, {lanes, steps});
  const auto b = ir::placeholder("B", DType::kI32, {steps, lanes});
  const ir::Var i("i"), k("k");
  const auto y = ir::compute("Y", {{i, lanes}}, {{k, steps}}, ir::Combiner::kSum,
                             {ir::call(dot, {ir::load(a->output(), {i, k}), ir::load(b->output(), {k, i})})});
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

// Returns this machine's variants, and each of them without the instructions.
std::vector<target::Device> devices() {
  std::vector<target::Device> result;
  for (const target::Device& device : local_devices()) {
    result.push_back(device);
    for (const std::vector<std::string>& missing :
         {std::vector<std::string>{"+avx512vnni", "+avxvnni"}, std::vector<std::string>{"+avx512bf16"},
          std::vector<std::string>{"+avx512vnni", "+avxvnni", "+avx512bw", "+avx2"}}) {
      target::Device& weaker = result.emplace_back(device);
      weaker.name += " without " + missing.back();
      for (const std::string& feature : missing) std::erase(weaker.features, feature);
    }
  }
  return result;
}

// `parts` is the number of elements in a word; values in `extremes` are likely. `second` has the
// values of the second factor's elements, if not all are allowed; fewer numbers of lanes are tested
// then.
void expect_exact_for_any_number_of_lanes(Intrinsic dot, int parts, const std::vector<int64_t>& extremes,
                                          const std::vector<int64_t>& second = {}) {
  Rng rng(3);
  const int64_t values = int64_t{1} << (32 / parts);
  for (const target::Device& device : devices()) {
    for (int64_t lanes = 1; lanes <= 64; lanes += !second.empty() ? 3 : lanes < 34 ? 1 : 5) {
      const auto lowered = rows_of(dot, lanes, 5);
      std::vector<lower::Tensor> inputs;
      for (const ir::Buffer& input : lowered.program.inputs) {
        lower::Tensor words = lower::Tensor::zeros(DType::kI32, input->shape);
        for (int64_t w = 0; w < words.num_elements(); ++w) {
          int64_t word = 0;
          for (int part = 0; part < parts; ++part)
            word = word * values + (!second.empty() && !inputs.empty() ? second[rng.below(second.size())]
                                    : rng.bernoulli(0.5)               ? extremes[rng.below(extremes.size())]
                                                                       : rng.uniform_int(0, values - 1));
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

TEST(Dot4, IsExactForAnyNumberOfLanes) {
  expect_exact_for_any_number_of_lanes(Intrinsic::kDot4, 4, {0, 127, 128, 255, 1});
}

// Includes 64 and -64, for which two products with 255 just fit in i16.
TEST(Dot4Narrow, IsExactForAnyNumberOfLanes) {
  expect_exact_for_any_number_of_lanes(Intrinsic::kDot4Narrow, 4, {0, 127, 128, 255, 1},
                                       {64, 192, 0, 1, 255, 37});
}

TEST(Dot2I16, IsExactForAnyNumberOfLanes) {
  expect_exact_for_any_number_of_lanes(Intrinsic::kDot2I16, 2, {0, 0x7fff, 0x8000, 0xffff, 1});
}

target::Device with_features(int vector_bytes, std::vector<std::string> features) {
  target::Device device;
  device.name = "test";
  device.arch = "x86-64";
  device.processor = vector_bytes == 64 ? "x86-64-v4" : "x86-64-v3";
  device.cpu().vector_bytes = vector_bytes;
  device.cpu().vector_registers = vector_bytes == 64 ? 32 : 16;
  device.features = std::move(features);
  return device;
}

const std::vector<std::string> kAvx512 = {"+sse4.2",   "+avx2",     "+fma",     "+avx512f",
                                          "+avx512bw", "+avx512vl", "+avx512dq"};

std::string assembly_of(const ir::Program& program, const target::Device& device) {
  const auto text = codegen::emit_assembly(program, device, {});
  EXPECT_TRUE(text.ok()) << text.error().message();
  return text.ok() ? *text : "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(LlvmCode, Dot4IsOneInstructionWhereThereIsOne) {
  const auto assembly = [](const target::Device& device) {
    return assembly_of(rows_of(Intrinsic::kDot4, 16, 5).program, device);
  };
  std::vector<std::string> vnni = kAvx512;
  vnni.push_back("+avx512vnni");

  const std::string wide = assembly(with_features(64, vnni));
  EXPECT_TRUE(has(wide, "vpdpbusd") && has(wide, "%zmm")) << wide;
  EXPECT_FALSE(has(wide, "vpmaddwd")) << wide;
  const std::string without = assembly(with_features(64, kAvx512));
  EXPECT_FALSE(has(without, "vpdpbusd")) << without;
  EXPECT_TRUE(has(without, "vpmaddwd")) << without;
  const std::string narrow = assembly(with_features(32, {"+sse4.2", "+avx2", "+avxvnni"}));
  EXPECT_TRUE(has(narrow, "vpdpbusd")) << narrow;
  EXPECT_FALSE(has(narrow, "%zmm")) << narrow;
  const std::string avx2 = assembly(with_features(32, {"+sse4.2", "+avx2"}));
  EXPECT_FALSE(has(avx2, "vpdpbusd")) << avx2;
  EXPECT_TRUE(has(avx2, "vpmaddwd")) << avx2;
}

TEST(LlvmCode, Dot4NarrowIsOneInstructionOrThree) {
  const auto assembly = [](const target::Device& device) {
    return assembly_of(rows_of(Intrinsic::kDot4Narrow, 16, 5).program, device);
  };
  const std::string vnni = assembly(with_features(32, {"+sse4.2", "+avx2", "+avxvnni"}));
  EXPECT_TRUE(has(vnni, "vpdpbusd")) << vnni;
  for (const int bytes : {32, 64}) {
    const std::string bare =
        assembly(with_features(bytes, bytes == 64 ? kAvx512 : std::vector<std::string>{"+sse4.2", "+avx2"}));
    EXPECT_TRUE(has(bare, "vpmaddubsw") && has(bare, "vpmaddwd") && has(bare, "vpaddd")) << bare;
    EXPECT_FALSE(has(bare, "vpsraw") || has(bare, "vpand")) << bare;
  }
}

TEST(LlvmCode, Dot2I16IsOneInstructionOrTwo) {
  const auto assembly = [](const target::Device& device) {
    return assembly_of(rows_of(Intrinsic::kDot2I16, 16, 5).program, device);
  };
  const std::string vnni = assembly(with_features(32, {"+sse4.2", "+avx2", "+avxvnni"}));
  EXPECT_TRUE(has(vnni, "vpdpwssd")) << vnni;
  const std::string avx2 = assembly(with_features(32, {"+sse4.2", "+avx2"}));
  EXPECT_FALSE(has(avx2, "vpdpwssd")) << avx2;
  EXPECT_TRUE(has(avx2, "vpmaddwd")) << avx2;
  EXPECT_FALSE(has(avx2, "vpsrad") || has(avx2, "vpand")) << avx2;
}

// Each sum's error, relative to sums in f64 with exact products, is within that of 2 * steps
// additions in f32, each of which may have a rounded product (Higham, Accuracy and Stability of
// Numerical Algorithms, 3.1).
TEST(Dot2, IsWithinTheErrorOfSumsInF32) {
  constexpr int64_t kSteps = 7;
  Rng rng(4);
  for (const target::Device& device : devices()) {
    for (int64_t lanes = 1; lanes <= 64; lanes += lanes < 34 ? 1 : 5) {
      const auto lowered = rows_of(Intrinsic::kDot2, lanes, kSteps);
      std::vector<lower::Tensor> inputs;
      for (const ir::Buffer& input : lowered.program.inputs) {
        lower::Tensor words = lower::Tensor::zeros(DType::kI32, input->shape);
        for (int64_t w = 0; w < words.num_elements(); ++w) {
          int64_t word = 0;
          for (int half = 0; half < 2; ++half)
            word = word * 65536 +
                   ir::f32_to_bf16(static_cast<float>(rng.normal() * std::exp2(rng.uniform_int(-6, 6))));
          words.set(w, ir::scalar_int(DType::kI32, word));
        }
        inputs.push_back(std::move(words));
      }
      const auto got = compile_and_run(lowered.program, device, inputs);
      ASSERT_TRUE(got.ok()) << got.error().message();
      for (int64_t i = 0; i < lanes; ++i) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < kSteps; ++k) {
          for (int shift = 0; shift < 32; shift += 16) {
            const auto element = [&](size_t input, int64_t at) {
              const auto bits = static_cast<uint16_t>(inputs[input].at(at).i >> shift);
              return static_cast<double>(ir::bf16_to_f32(bits));
            };
            const double product = element(0, i * kSteps + k) * element(1, k * lanes + i);
            sum += product;
            magnitude += std::abs(product);
          }
        }
        ASSERT_NEAR((*got)[0].at(i).f, sum, 2 * (2 * kSteps) * 0x1p-24 * magnitude)
            << device.name << ", lane " << i << " of " << lanes;
      }
    }
  }
}

TEST(LlvmCode, Dot2IsOneInstructionWhereThereIsOne) {
  const auto assembly = [](const target::Device& device) {
    return assembly_of(rows_of(Intrinsic::kDot2, 16, 5).program, device);
  };
  std::vector<std::string> bf16 = kAvx512;
  bf16.push_back("+avx512bf16");
  const std::string wide = assembly(with_features(64, bf16));
  EXPECT_TRUE(has(wide, "vdpbf16ps") && has(wide, "%zmm")) << wide;
  EXPECT_FALSE(has(wide, "vfmadd")) << wide;
  for (const target::Device& without :
       {with_features(64, kAvx512), with_features(32, {"+sse4.2", "+avx2", "+fma"})}) {
    const std::string text = assembly(without);
    EXPECT_FALSE(has(text, "vdpbf16ps")) << text;
    EXPECT_TRUE(has(text, "vfmadd")) << text;
  }
}

// y = bf16(x) is one instruction, or shifts without calls.
TEST(LlvmCode, RoundingToBf16IsVectorCode) {
  const auto assembly = [](const target::Device& device) {
    const ir::Buffer x = ir::make_buffer("x", DType::kF32, {64}),
                     y = ir::make_buffer("y", DType::kBF16, {64});
    const ir::Var i("i"), v("v");
    const Expr at = Expr(i) * Expr(16) + Expr(v);
    const ir::Stmt body = ir::make_for({v,
                                        16,
                                        ir::ForKind::kVectorized,
                                        {},
                                        0,
                                        ir::make_store(y, {at}, ir::cast(DType::kBF16, ir::load(x, {at})))});
    return assembly_of({"round", {x}, {y}, ir::make_for({i, 4, ir::ForKind::kSerial, {}, 0, body})}, device);
  };
  std::vector<std::string> bf16 = kAvx512;
  bf16.push_back("+avx512bf16");
  const std::string one = assembly(with_features(64, bf16));
  EXPECT_TRUE(has(one, "vcvtneps2bf16\t%zmm") || has(one, "vcvtneps2bf16\t(")) << one;
  EXPECT_FALSE(has(one, "vpsrld")) << one;
  const std::string several = assembly(with_features(64, kAvx512));
  EXPECT_TRUE(has(several, "vpsrld") && has(several, "%zmm")) << several;
  EXPECT_FALSE(has(several, "vcvtneps2bf16") || has(several, "call")) << several;
}

// Quantized products and convolutions with schedules of the design space.
TEST(Dot4, CandidatesAreExactOnEveryInstructionSet) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
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
    for (target::Device device : local_devices()) {
      device.cpu().cores = 2;
      const auto space = space::DesignSpace::build(workload, device, {});
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
}  // namespace tensorsmith::test::dot_test
