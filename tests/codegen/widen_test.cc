// Copies of short floats that are stored as f32: the rewritten program has the same meaning, and
// only the intended programs are rewritten.
#include "codegen/widen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/runner.h"
#include "ir/text.h"
#include "ir/verify_program.h"

namespace tensorsmith::widen_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the rewritten program's text, after comparing both programs bit by bit by the
// interpreter.
std::string widened(const std::string& text) {
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().message();
  if (!program.ok()) return {};
  const ir::Program result = codegen::widen_copies(*program);
  const Status legal = ir::verify(result);
  EXPECT_TRUE(legal.ok()) << legal.error().message();
  Rng rng(5);
  std::vector<lower::Tensor> inputs;
  for (const ir::Buffer& b : program->inputs) inputs.push_back(lower::random_tensor(b->dtype, b->shape, rng));
  const auto want = lower::run(*program, inputs);
  const auto got = lower::run(result, inputs);
  EXPECT_TRUE(want.ok() && got.ok()) << (want.ok() ? got : want).error().message();
  if (want.ok() && got.ok()) {
    for (size_t o = 0; o < want->size(); ++o) EXPECT_EQ((*got)[o].data, (*want)[o].data);
  }
  return ir::print(result);
}

// A window over padded data; `read` is the expression with which the sum reads the copy.
std::string window(const std::string& stored, const std::string& read) {
  return R"(program kernel {
  input x: bf16[16]
  input w: bf16[3]
  output y: f32[16]
  alloc pad: bf16[18] {
    for i in 18 { pad[i] = )" +
         stored + R"( }
    for j in 16 {
      y[j] = 0.0
      for k in 3 { y[j] = y[j] + )" +
         read + R"( * f32(w[k]) }
    }
  }
})";
}

constexpr const char* kPad = "select(i >= 1 && i < 17, x[i - 1], 0.0bf16)";

TEST(Widen, PaddingIsConvertedOnce) {
  const std::string text = widened(window(kPad, "f32(pad[j + k])"));
  EXPECT_THAT(text, HasSubstr("alloc pad: f32[18]"));
  EXPECT_THAT(text, HasSubstr("f32(x[i - 1])"));
  EXPECT_THAT(text, HasSubstr("y[j] + pad[j + k] * f32(w[k])"));
}

TEST(Widen, RoundedValuesStay) {
  const std::string text = widened(window("bf16(f32(x[min(i, 15)]) * 1.5)", "f32(pad[j + k])"));
  EXPECT_THAT(text, HasSubstr("alloc pad: bf16[18]"));
}

// Such a read may be of a packed element, which consists of short floats.
TEST(Widen, WhatIsReadShortStays) {
  const std::string text = widened(window(kPad, "f32(max(pad[j + k], pad[j]))"));
  EXPECT_THAT(text, HasSubstr("alloc pad: bf16[18]"));
  EXPECT_THAT(text, Not(HasSubstr("f32[18]")));
}

}  // namespace
}  // namespace tensorsmith::widen_test
