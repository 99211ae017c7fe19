// Accumulators promoted to registers: the rewritten program has the same meaning, and only the
// intended programs are rewritten.
#include "codegen/promote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/runner.h"
#include "ir/text.h"
#include "ir/verify_program.h"

namespace tensorsmith::promote_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the rewritten program's text, after comparing both programs by the interpreter.
std::string promoted(const std::string& text) {
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().message();
  if (!program.ok()) return {};
  const ir::Program result = codegen::promote_accumulators(*program, 32, 64);
  const Status legal = ir::verify(result);
  EXPECT_TRUE(legal.ok()) << legal.error().message();
  Rng rng(4);
  std::vector<lower::Tensor> inputs;
  for (const ir::Buffer& b : program->inputs) inputs.push_back(lower::random_tensor(b->dtype, b->shape, rng));
  const auto want = lower::run(*program, inputs);
  const auto got = lower::run(result, inputs);
  EXPECT_TRUE(want.ok() && got.ok()) << (want.ok() ? got : want).error().message();
  if (want.ok() && got.ok()) {
    for (size_t o = 0; o < want->size(); ++o) EXPECT_EQ(test::compare((*got)[o], (*want)[o], 0, 0), "");
  }
  return ir::print(result);
}

TEST(Promote, TileIsCopiedAroundTheReduction) {
  const std::string text = promoted(R"(program kernel {
  input A: f32[8, 5]
  input B: f32[5, 32]
  output C: f32[8, 32]
  for y in 2 {
    unrolled i in 4 { vectorized j in 32 { C[y * 4 + i, j] = 0.0 } }
    for k in 5 {
      unrolled i in 4 {
        vectorized j in 32 { C[y * 4 + i, j] = C[y * 4 + i, j] + A[y * 4 + i, k] * B[k, j] }
      }
    }
  }
})");
  EXPECT_THAT(text, HasSubstr("alloc C.acc: f32[4, 32] local"));
  EXPECT_THAT(text, HasSubstr("C.acc[i, j] = C.acc[i, j] + A[y * 4 + i, k] * B[k, j]"));
  EXPECT_THAT(text, HasSubstr("C[y * 4 + i, j] = C.acc[i, j]"));
}

TEST(Promote, GuardsOfPlacesGoWithTheCopies) {
  const std::string text = promoted(R"(program kernel {
  input A: f32[7, 9]
  output C: f32[7]
  for i in 7 { C[i] = 0.0 }
  for io in 2 {
    for k in 3 {
      for k2 in 4 {
        unrolled ii in 4 {
          if io * 4 + ii < 7 && k * 4 + k2 < 9 { C[io * 4 + ii] = C[io * 4 + ii] + A[io * 4 + ii, k * 4 + k2] }
        }
      }
    }
  }
})");
  EXPECT_THAT(text, HasSubstr("alloc C.acc: f32[4] local"));
}

// A small buffer of the program becomes registers as a whole, except where a loop that is not
// unrolled selects its elements.
TEST(Promote, SmallBuffersThatALoopIndexesAreCopiedToo) {
  const auto nest = [](const std::string& tiles, int lanes = 8) {
    const std::string n = std::to_string(lanes), type = ": f32[3, " + n + "]", j = " vectorized j in " + n;
    return promoted("program kernel {\n  input A: f32[5, " + n + "]\n  output R" + type + "\n  alloc C" +
                    type + " local {\n" + tiles + " t in 3 {" + j + " { C[t, j] = 0.0 } }\n" + tiles +
                    " t in 3 { for k in 5 {" + j + " { C[t, j] = C[t, j] + A[k, j] } } }\n" + tiles +
                    " t in 3 {" + j + " { R[t, j] = C[t, j] } }\n  }\n}");
  };
  EXPECT_THAT(nest("for"), HasSubstr("alloc C.acc: f32[8] local"));
  EXPECT_THAT(nest("unrolled"), Not(HasSubstr("C.acc")));
  EXPECT_THAT(nest("unrolled", 12), HasSubstr("alloc C.acc: f32[12] local"));
}

TEST(Promote, LeavesAloneWhatItMustNotTouch) {
  // A recurrence over the loop.
  EXPECT_THAT(promoted(R"(program kernel {
  input A: f32[9]
  output C: f32[9]
  C[0] = 1.0
  for k in 8 { C[k + 1] = C[k] + A[k] }
})"),
              Not(HasSubstr("alloc")));
  // Two positions of the tile are the same element.
  EXPECT_THAT(promoted(R"(program kernel {
  input A: f32[9]
  output C: f32[3]
  for z in 3 { C[z] = 0.0 }
  for k in 9 { unrolled i in 2 { unrolled j in 2 { C[i + j] = C[i + j] + A[k] } } }
})"),
              Not(HasSubstr("alloc")));
  // Another element is read, too.
  EXPECT_THAT(promoted(R"(program kernel {
  input A: f32[9]
  output C: f32[4]
  for z in 4 { C[z] = 1.0 }
  for k in 9 { unrolled i in 3 { C[i] = C[i] + C[3] * A[k] } }
})"),
              Not(HasSubstr("alloc")));
  // Too many accumulators.
  EXPECT_THAT(promoted(R"(program kernel {
  input A: f32[9]
  output C: f32[100]
  for z in 100 { C[z] = 1.0 }
  for k in 9 { unrolled i in 100 { C[i] = C[i] + A[k] } }
})"),
              Not(HasSubstr("alloc")));
}

}  // namespace
}  // namespace tensorsmith::promote_test
