// Contractions by dot-product words in the design space: their results compared with the reference
// interpreter, for all signs, zero points and tails, and where the default schedule uses them.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "space/design_space.h"
#include "space/plan_steps.h"
#include "support/bytes.h"
#include "support/small_workloads.h"

namespace tensorsmith::space::dot_test {
namespace {

target::Device device(int vector_bytes, int cores) {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.cpu().vector_bytes = vector_bytes;
  d.cpu().vector_registers = vector_bytes == 64 ? 32 : 16;
  d.features = {"+avx512vnni", "+avx512bf16", "+avx512vl", "+avx512bw"};
  d.cpu().cores = cores;
  return d;
}

DesignSpace build(const ir::Workload& workload, int vector_bytes) {
  auto space = DesignSpace::build(workload, device(vector_bytes, 1 + vector_bytes % 3), {});
  EXPECT_TRUE(space.ok()) << space.error().message();
  return *space;
}

bool takes_words(const DesignSpace& space, const Candidate& c) {
  return space.describe(c.sketch).find(".product") != std::string::npos;
}

TEST(Dot4, EveryCandidateComputesTheProducts) {
  int taken = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const ir::Workload workload =
        rng.bernoulli(0.5) ? test::small::quantized_matmul(rng.uniform_int(1, 20), rng.uniform_int(1, 40),
                                                           rng.uniform_int(1, 40), rng)
                           : test::small::quantized_conv2d(rng.uniform_int(1, 20), rng.uniform_int(3, 9),
                                                           rng.uniform_int(1, 20), rng.uniform_int(1, 3),
                                                           rng.uniform_int(1, 2), rng.uniform_int(0, 1), rng);
    const auto inputs = test::random_bytes(workload, rng);
    const auto expected = lower::evaluate(workload, inputs);
    ASSERT_TRUE(expected.ok());
    const DesignSpace space = build(workload, seed % 2 == 0 ? 64 : 32);
    for (int i = 0; i < 12; ++i) {
      const Candidate c = i == 0 ? space.default_candidate() : space.sample(rng);
      const auto trace = space.to_trace(c);
      ASSERT_TRUE(trace.ok());
      const auto schedule = sched::replay(workload, *trace);
      ASSERT_TRUE(schedule.ok()) << schedule.error().message() << "\n" << sched::print(*trace);
      const auto lowered = lower::lower(*schedule);
      ASSERT_TRUE(lowered.ok()) << lowered.error().message() << "\n" << sched::print(*trace);
      auto prepared = inputs;
      for (const auto& constant : lowered->prepared) {
        auto made = lower::prepare(constant, inputs[constant.input]);
        ASSERT_TRUE(made.ok());
        prepared[constant.input] = std::move(*made);
      }
      const auto got = lower::run(lowered->program, prepared);
      ASSERT_TRUE(got.ok()) << got.error().message() << "\n" << sched::print(*trace);
      ASSERT_EQ((*got)[0].data, (*expected)[0].data) << "seed " << seed << "\n" << sched::print(*trace);
      taken += takes_words(space, c) ? 1 : 0;
    }
  }
  EXPECT_GT(taken, 200);
}

// Sums of up to 40 x 9 products of elements in [-1, 1], in other orders and roundings; Winograd's
// errors are larger (tests/space/winograd_test.cc).
TEST(Dot2, EveryCandidateComputesTheProducts) {
  int taken = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const ir::Workload workload =
        rng.bernoulli(0.5)
            ? test::small::bf16_matmul(rng.uniform_int(1, 20), rng.uniform_int(1, 40), rng.uniform_int(1, 40),
                                       rng.bernoulli(0.7))
            : test::small::bf16_conv2d(rng.uniform_int(1, 20), rng.uniform_int(3, 9), rng.uniform_int(1, 20),
                                       rng.uniform_int(1, 3), rng.uniform_int(1, 2), rng.uniform_int(0, 1));
    std::vector<lower::Tensor> inputs;
    for (const ir::Buffer& input : workload.inputs())
      inputs.push_back(lower::random_tensor(input->dtype, input->shape, rng));
    const auto expected = lower::evaluate(workload, inputs);
    ASSERT_TRUE(expected.ok());
    const DesignSpace space = build(workload, seed % 2 == 0 ? 64 : 32);
    for (int i = 0; i < 12; ++i) {
      const Candidate c = i == 0 ? space.default_candidate() : space.sample(rng);
      const auto trace = space.to_trace(c);
      ASSERT_TRUE(trace.ok());
      const auto lowered = lower::lower(*sched::replay(workload, *trace));
      ASSERT_TRUE(lowered.ok()) << lowered.error().message() << "\n" << sched::print(*trace);
      auto prepared = inputs;
      for (const auto& constant : lowered->prepared)
        prepared[constant.input] = *lower::prepare(constant, inputs[constant.input]);
      const auto got = lower::run(lowered->program, prepared);
      ASSERT_TRUE(got.ok()) << got.error().message() << "\n" << sched::print(*trace);
      for (int64_t e = 0; e < (*got)[0].num_elements(); ++e)
        ASSERT_NEAR((*got)[0].at(e).f, (*expected)[0].at(e).f, 1e-4)
            << "seed " << seed << " element " << e << "\n"
            << sched::print(*trace);
      taken += takes_words(space, c) && sched::print(*trace).find("dot stage") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GT(taken, 200);
}

TEST(Dot2, DefaultTakesIt) {
  for (const int vector_bytes : {32, 64}) {
    for (const ir::Workload& workload :
         {test::small::bf16_matmul(256, 256, 256, true), test::small::bf16_matmul(40, 100, 333, true),
          test::small::bf16_conv2d(256, 28, 64, 1, 1, 0), test::small::bf16_conv2d(64, 28, 64, 3, 2, 1)}) {
      const DesignSpace space = build(workload, vector_bytes);
      EXPECT_TRUE(takes_words(space, space.default_candidate())) << vector_bytes;
    }
  }
}

TEST(Dot4, DefaultTakesIt) {
  for (const int vector_bytes : {32, 64}) {
    Rng rng(5);
    for (const ir::Workload& workload :
         {test::small::quantized_matmul(256, 256, 256, rng), test::small::quantized_matmul(40, 100, 333, rng),
          test::small::quantized_conv2d(64, 28, 64, 3, 1, 1, rng)}) {
      const DesignSpace space = build(workload, vector_bytes);
      EXPECT_TRUE(takes_words(space, space.default_candidate())) << vector_bytes;
    }
  }
}

// Without VNNI, bytes are multiplied as bytes if a constant of 7 bits keeps sums of two products in
// i16, else as pairs of i16.
TEST(Dot4, OfBytesWithoutVnniWhereAConstantHasAReducedRange) {
  target::Device bare = device(32, 1);
  bare.features = {"+sse4.2", "+avx2", "+fma"};
  for (const char* dtype : {"i8", "u8"}) {
    for (const bool reduced : {false, true}) {
      const std::string text = "workload { input X: u8[64, 64] const" +
                               std::string(reduced ? "(reduced_range)" : "") + " W: " + dtype +
                               "[64, 64] C: i32[i: 64, j: 64] = sum{k: 64} i32(X[i, k]) * i32(W[k, j])" +
                               " output C }";
      const auto workload = ir::parse_workload(text);
      ASSERT_TRUE(workload.ok()) << workload.error().message();
      const auto space = DesignSpace::build(*workload, bare, {});
      ASSERT_TRUE(space.ok());
      const auto trace = space->to_trace(space->default_candidate());
      ASSERT_TRUE(trace.ok());
      const std::string program = ir::print(lower::lower(*sched::replay(*workload, *trace))->program);
      EXPECT_EQ(program.find("dot4narrow(") != std::string::npos, reduced) << program;
      EXPECT_EQ(program.find("dot2i16(") != std::string::npos, !reduced) << program;
    }
  }
}

// LLVM splits long vectors whose length is no power of two: 48 bytes at a time took 14 times as
// long.
TEST(Dot4, OutputsOfBytesAreWrittenInWholeVectors) {
  EXPECT_EQ(vector_lanes(48, 64), 16);
  EXPECT_EQ(vector_lanes(96, 64), 32);
  EXPECT_EQ(vector_lanes(128, 64), 64);
  EXPECT_EQ(vector_lanes(48, 16), 16);
  EXPECT_EQ(vector_lanes(14, 16), 14);
  EXPECT_EQ(vector_lanes(17, 16), 1);
  Rng rng(1);
  const ir::Workload workload = test::small::quantized_matmul(96, 96, 64, rng);
  const DesignSpace space = build(workload, 64);
  int wide = 0;
  for (int i = 0; i < 300; ++i) {
    const Candidate c = space.sample(rng);
    const auto trace = space.to_trace(c);
    ASSERT_TRUE(trace.ok());
    const auto lowered = lower::lower(*sched::replay(workload, *trace));
    ASSERT_TRUE(lowered.ok());
    const std::string text = ir::print(lowered->program);
    for (size_t at = text.find("vectorized "); at != std::string::npos;
         at = text.find("vectorized ", at + 1)) {
      const std::string body = text.substr(text.find('\n', at) + 1);
      if (body.find(lowered->program.outputs[0]->name + "[") != body.find_first_not_of(' ')) continue;
      const int64_t lanes = std::stoll(text.substr(text.find(" in ", at) + 4));
      wide += lanes > 16 ? 1 : 0;
      EXPECT_TRUE(lanes <= 16 || lanes % 8 != 0 || (lanes & (lanes - 1)) == 0) << lanes << "\n" << text;
    }
  }
  EXPECT_GT(wide, 0);
}

// Workloads without short elements have no such sketches.
TEST(Dot4, IsForShortElements) {
  const DesignSpace space = build(test::small::matmul(16, 16, 16), 64);
  for (int k = 0; k < static_cast<int>(space.num_sketches()); ++k)
    EXPECT_EQ(space.describe(k).find(".product"), std::string::npos);
}

}  // namespace
}  // namespace tensorsmith::space::dot_test
