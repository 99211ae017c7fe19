// Minima and maxima that are combined before the accumulator is updated, and inputs that are
// checked for NaN before a part of a program: which statements are chosen, and what they check.
#include "codegen/llvm/combine_extrema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/llvm/extremum_regions.h"
#include "codegen/runner.h"
#include "ir/analysis.h"
#include "ir/text.h"
#include "ir/verify_program.h"

namespace tensorsmith::combine_extrema_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ir::Program parsed(const std::string& text) {
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().message();
  return program.ok() ? *program : ir::Program();
}

// Returns the rewritten program's text, after comparing both programs by the interpreter.
std::string combined(const std::string& text) {
  const ir::Program program = parsed(text);
  const ir::Program result = codegen::combine_extrema(program);
  const Status legal = ir::verify(result);
  EXPECT_TRUE(legal.ok()) << legal.error().message();
  Rng rng(4);
  std::vector<lower::Tensor> inputs;
  for (const ir::Buffer& b : program.inputs) inputs.push_back(lower::random_tensor(b->dtype, b->shape, rng));
  const auto want = lower::run(program, inputs);
  const auto got = lower::run(result, inputs);
  EXPECT_TRUE(want.ok() && got.ok()) << (want.ok() ? got : want).error().message();
  if (want.ok() && got.ok()) {
    for (size_t o = 0; o < want->size(); ++o) EXPECT_EQ(test::compare((*got)[o], (*want)[o], 0, 0), "");
  }
  return ir::print(result);
}

TEST(CombineExtrema, WindowsBecomeExpressionsRowByRow) {
  const std::string text = combined(R"(program kernel {
  input x: f32[6, 18]
  output m: f32[4, 16]
  for i in 4 {
    vectorized j in 16 { m[i, j] = f32(-inf) }
    unrolled p in 3 {
      unrolled q in 3 { vectorized j in 16 { m[i, j] = max(m[i, j], x[i + p, j + q]) } }
    }
  }
})");
  EXPECT_THAT(text, HasSubstr("m[i, j] = max(m[i, j], max(max(max(max(x[i, j], x[i, j + 1]), x[i, j + 2]), "
                              "max(max(x[i + 1, j], x[i + 1, j + 1])"));
  EXPECT_THAT(text, Not(HasSubstr("unrolled")));
}

TEST(CombineExtrema, SerialLoopsTakeFourStepsAtOnce) {
  const std::string text = combined(R"(program kernel {
  input x: f32[23]
  output m: f32[1]
  m[0] = f32(inf)
  for k in 23 { m[0] = min(m[0], x[k]) }
})");
  EXPECT_THAT(text, HasSubstr("for k in 5 {"));
  EXPECT_THAT(
      text, HasSubstr("m[0] = min(m[0], min(min(x[k * 4], x[k * 4 + 1]), min(x[k * 4 + 2], x[k * 4 + 3])))"));
  EXPECT_THAT(text, HasSubstr("m[0] = min(m[0], min(min(x[20], x[21]), x[22]))"));
}

TEST(CombineExtrema, IntegersToo) {
  EXPECT_THAT(combined(R"(program kernel {
  input x: i8[6]
  output m: i8[4]
  for i in 4 {
    m[i] = i8(-128)
    for p in 3 { m[i] = max(m[i], x[i + p]) }
  }
})"),
              HasSubstr("max(m[i], max(max(x[i], x[i + 1]), x[i + 2]))"));
}

TEST(CombineExtrema, LeavesAloneWhatItMustNotTouch) {
  // Not rewritten: steps that read what the previous one has written; sums; a condition on each
  // step; long loops that nothing unrolls.
  const char* programs[] = {R"(program kernel {
  input x: f32[9]
  output m: f32[9]
  m[0] = 0.0
  for k in 8 { m[k + 1] = max(m[k + 1], m[k]) }
})",
                            R"(program kernel {
  input x: f32[9]
  output m: f32[1]
  m[0] = 0.0
  for k in 9 { m[0] = m[0] + x[k] }
})",
                            R"(program kernel {
  input x: f32[9]
  output m: f32[1]
  m[0] = 0.0
  for k in 9 { if x[k] < 1.0 { m[0] = max(m[0], x[k]) } }
})",
                            R"(program kernel {
  input x: f32[64, 300]
  output m: f32[64]
  for i in 64 { m[i] = 0.0 }
  for k in 300 { for i in 64 { m[i] = max(m[i], x[i, k]) } }
})"};
  for (const char* text : programs) {
    const ir::Program program = parsed(text);
    EXPECT_EQ(codegen::combine_extrema(program).body, program.body) << text;
  }
}

// Describes each part: the loop that it is the body of, or that it is; then "values", or its
// regions as buffer[begin +extent, ...].
std::vector<std::string> parts_of(const ir::Program& program) {
  const codegen::SpeculativeParts parts(program);
  std::vector<std::string> all;
  const auto describe = [&](const std::string& place, const codegen::SpeculativePart& part) {
    std::string text = place + ":";
    for (const codegen::Region& region : part.regions) {
      text += " " + region.buffer->name + "[";
      for (size_t d = 0; d < region.extent.size(); ++d)
        text += (d > 0 ? ", " : "") + ir::print(ir::to_expr(region.begin[d])) + " +" +
                std::to_string(region.extent[d]);
      text += "]";
    }
    all.push_back(text + (part.regions.empty() ? " values" : ""));
  };
  ir::for_each_stmt(program.body, [&](const ir::Stmt& s) {
    const auto* loop = ir::as<ir::For>(s);
    if (const auto* part = parts.part(s))
      describe(loop != nullptr ? "for " + loop->var.name() : "here", *part);
    if (loop == nullptr) return;
    if (const auto* part = parts.range(*loop)) describe("range " + loop->var.name(), *part);
  });
  return all;
}

std::string pool(int64_t channels, int64_t size, int64_t stride, const std::string& value,
                 const std::string& first_loop = "for") {
  const std::string c = std::to_string(channels), n = std::to_string(size),
                    o = std::to_string((size - 3) / stride + 1), s = std::to_string(stride);
  return "program kernel {\n  input x: f32[" + c + ", " + n + ", " + n + "]\n  output m: f32[" + c + ", " +
         o + ", " + o + "]\n  " + first_loop + " c in " + c + " {\n    for i in " + o +
         " {\n      for j in " + o +
         " {\n        m[c, i, j] = f32(-inf)\n        for p in 3 { for q in 3 { m[c, i, j] = max(m[c, i, "
         "j], " +
         value + ") } }\n      }\n    }\n  }\n}";
}

TEST(ExtremumRegions, OverlappingWindowsAreLookedAtBefore) {
  const std::string x = "x[c, i + p, j + q]";
  // Small enough as a whole; then one channel at a time; then some rows, if they overlap little.
  EXPECT_THAT(parts_of(parsed(pool(2, 20, 1, x))), ElementsAre("for c: x[0 +2, 0 +20, 0 +20]"));
  EXPECT_THAT(parts_of(parsed(pool(64, 20, 1, x))), ElementsAre("for i: x[c +1, 0 +20, 0 +20]"));
  EXPECT_THAT(parts_of(parsed(pool(64, 99, 1, x))), ElementsAre("for i: x[c +1, 0 +99, 0 +99]"));
  const std::string apart = "x[c, i * 3 + p, j + q]";
  EXPECT_THAT(parts_of(parsed(R"(program kernel {
  input x: f32[2, 300, 99]
  output m: f32[2, 100, 97]
  for c in 2 {
    for i in 100 {
      for j in 97 {
        m[c, i, j] = f32(-inf)
        for p in 3 { for q in 3 { m[c, i, j] = max(m[c, i, j], x[c, i * 3 + p, j + q]) } }
      }
    }
  }
})")),
              ElementsAre("for j: x[c +1, i * 3 +3, 0 +99]"));
  // Each thread has its own part.
  EXPECT_THAT(parts_of(parsed(pool(2, 20, 1, x, "parallel"))), ElementsAre("for i: x[c +1, 0 +20, 0 +20]"));
  // The region includes elements outside the image, which are neither read nor checked.
  EXPECT_THAT(parts_of(parsed(
                  pool(2, 20, 1, "select(0 < i + p && 0 < j + q, x[c, i + p - 1, j + q - 1], f32(-inf))"))),
              ElementsAre("for c: x[0 +2, -1 +20, -1 +20]"));
}

TEST(ExtremumRegions, ValuesAreLookedAtWhereThatIsCheaperOrAllThatIsKnown) {
  // Checked as values: each element read once; arithmetic, which makes NaN of infinities; elements
  // that the data selects.
  EXPECT_THAT(parts_of(parsed(pool(2, 21, 3, "x[c, i * 3 + p, j * 3 + q]"))), ElementsAre("for c: values"));
  EXPECT_THAT(parts_of(parsed(pool(2, 20, 1, "x[c, i + p, j + q] * 2.0"))), ElementsAre("for c: values"));
  EXPECT_THAT(parts_of(parsed(pool(2, 20, 1, "x[c, i + p, j + q] * 2.0", "parallel"))),
              ElementsAre("range c: values"));
  EXPECT_THAT(parts_of(parsed(pool(2, 20, 1, "select(p < 1, f32(nan), x[c, i + p, j + q])"))),
              ElementsAre("for c: values"));
  EXPECT_THAT(parts_of(parsed(pool(2, 20, 1, "x[c, i64(x[c, i, j]), j + q]"))), ElementsAre("for c: values"));
}

// Several iterations of an outer loop continue with the same accumulator: a NaN of the first must
// be kept.
TEST(ExtremumRegions, NanStaysInWhatLaterIterationsGoOnWith) {
  const ir::Program program = parsed(R"(program kernel {
  input x: f32[4, 4002]
  output m: f32[4000]
  for k in 4 {
    for i in 4000 {
      if k < 1 { m[i] = f32(-inf) }
      for p in 3 { m[i] = max(m[i], x[k, i + p]) }
    }
  }
})");
  EXPECT_THAT(parts_of(program), ElementsAre("for k: x[0 +4, 0 +4002]"));
  Rng rng(1);
  std::vector<lower::Tensor> inputs = {lower::random_tensor(ir::DType::kF32, {4, 4002}, rng)};
  inputs[0].set(77, ir::scalar_float(ir::DType::kF32, std::nan("")));
  for (const target::Device& device : test::local_devices()) {
    const auto got = test::compile_and_run(program, device, inputs, 1);
    ASSERT_TRUE(got.ok()) << got.error().message();
    for (int64_t i = 0; i < 4000; ++i)
      EXPECT_EQ(std::isnan((*got)[0].at(i).f), i >= 75 && i <= 77) << i << " on " << device.name;
  }
}

TEST(ExtremumRegions, WhatCannotBeRepeatedIsExact) {
  // The accumulator is initialized outside; a sum is computed together with the maximum.
  EXPECT_THAT(parts_of(parsed(R"(program kernel {
  input x: f32[40]
  input y: f32[1]
  output m: f32[1]
  alloc s: f32[1] {
    m[0] = y[0]
    s[0] = 0.0
    for k in 40 {
      m[0] = max(m[0], x[k])
      s[0] = s[0] + x[k]
    }
    m[0] = max(m[0], s[0])
  }
})")),
              ElementsAre());
}

}  // namespace
}  // namespace tensorsmith::combine_extrema_test
