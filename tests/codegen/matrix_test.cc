// Products of tiles: which loop nests are recognized, and the code that matrix units get for them.
#include <gtest/gtest.h>

#include <regex>

#include "codegen/isas.h"
#include "codegen/llvm/codegen.h"
#include "codegen/matrix_nest.h"
#include "codegen/runner.h"
#include "ir/analysis.h"
#include "ir/scalar.h"
#include "ir/text.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "space/design_space.h"
#include "support/small_workloads.h"

namespace tensorsmith::test::matrix_test {
namespace {

constexpr sched::MatrixUnits kUnits{.dot4 = true, .dot2 = true};

struct Shape {
  int64_t rows, outer, columns, steps, blocks;
  const char* dot;
};

// C[rows, outer * columns] += A[rows, blocks * steps] . B[blocks * steps, outer * columns]
ir::Program product(const Shape& s) {
  const bool floats = std::string(s.dot) == "dot2";
  std::string text = R"(program kernel {
  input A: i32[$m, $k]
  input B: i32[$k, $n]
  output C: $type[$m, $n]
  for i0 in $m {
    for j0 in $n {
      C[i0, j0] = $zero
    }
  }
  for k0 in $blocks {
    for k in $steps {
      unrolled i in $m {
        unrolled jo in $outer {
          vectorized j in $columns {
            C[i, jo * $columns + j] = C[i, jo * $columns + j] + $dot(A[i, k0 * $steps + k], B[k0 * $steps + k, jo * $columns + j])
          }
        }
      }
    }
  }
}
)";
  const std::pair<const char*, std::string> values[] = {{"m", std::to_string(s.rows)},
                                                        {"n", std::to_string(s.outer * s.columns)},
                                                        {"k", std::to_string(s.blocks * s.steps)},
                                                        {"type", floats ? "f32" : "i32"},
                                                        {"zero", floats ? "0.0" : "0i32"},
                                                        {"blocks", std::to_string(s.blocks)},
                                                        {"steps", std::to_string(s.steps)},
                                                        {"outer", std::to_string(s.outer)},
                                                        {"columns", std::to_string(s.columns)},
                                                        {"dot", s.dot}};
  for (const auto& [name, value] : values)
    text = std::regex_replace(text, std::regex("\\$" + std::string(name) + "\\b"), value);
  auto program = ir::parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().message();
  return program.ok() ? *program : ir::Program{};
}

// Finds the first loop of the program at which such a nest begins.
std::optional<codegen::MatrixNest> find(const ir::Program& program) {
  std::optional<codegen::MatrixNest> found;
  ir::for_each_stmt(program.body, [&](const ir::Stmt& s) {
    const auto* loop = ir::as<ir::For>(s);
    if (loop != nullptr && !found) found = codegen::match_matrix_nest(*loop, kUnits);
  });
  return found;
}

TEST(MatrixNest, WhatFitsTheTiles) {
  for (const Shape& s :
       {Shape{32, 2, 16, 16, 3, "dot4"}, Shape{32, 2, 16, 48, 1, "dot2"}, Shape{17, 1, 13, 7, 2, "dot4"},
        Shape{48, 1, 16, 16, 2, "dot2"}, Shape{2, 3, 16, 32, 2, "dot4"}}) {
    const auto nest = find(product(s));
    ASSERT_TRUE(nest) << s.rows << " rows, " << s.steps << " steps";
    EXPECT_EQ(nest->sums.size(), 2U);
    EXPECT_EQ(nest->b_stride, s.outer * s.columns);
    EXPECT_EQ(nest->a_stride, s.blocks * s.steps);
  }
}

TEST(MatrixNest, WhatDoesNot) {
  EXPECT_FALSE(find(product({32, 3, 16, 16, 2, "dot4"})));     // eleven tiles
  EXPECT_FALSE(find(product({16, 1, 16, 20, 2, "dot4"})));     // a tile and a quarter of steps
  EXPECT_FALSE(find(product({16, 1, 16, 16, 2, "dot2i16"})));  // no matrix unit supports it
  const ir::Program program = product({16, 1, 16, 16, 2, "dot2"});
  ir::for_each_stmt(program.body, [&](const ir::Stmt& s) {
    if (const auto* loop = ir::as<ir::For>(s)) {
      EXPECT_FALSE(codegen::match_matrix_nest(*loop, {.dot4 = true, .dot2 = false}));
    }
  });
}

TEST(Matrix, CodeIsOfTiles) {
  const auto code = codegen::emit_assembly(product({32, 2, 16, 16, 4, "dot2"}), device_with("amx"), {});
  ASSERT_TRUE(code.ok()) << code.error().message();
  const auto count = [&](const char* text) {
    const std::regex expression(text);
    return std::distance(std::sregex_iterator(code->begin(), code->end(), expression), {});
  };
  EXPECT_EQ(count("tdpbf16ps"), 4) << *code;
  EXPECT_EQ(count("tileloadd"), 4 + 4) << *code;  // sums before the loop, factors inside
  EXPECT_EQ(count("tilestored"), 4) << *code;
  EXPECT_EQ(count("ldtilecfg"), 1) << *code;
  EXPECT_EQ(count("tilerelease"), 1) << *code;
  EXPECT_EQ(count("vdpbf16ps"), 0) << *code;
}

// Random bytes, or bf16 elements that are small integers, whose sums are exact in any order.
lower::Tensor random_words(const std::vector<int64_t>& shape, bool floats, Rng& rng) {
  lower::Tensor words = lower::Tensor::zeros(ir::DType::kI32, shape);
  for (int64_t w = 0; w < words.num_elements(); ++w) {
    int64_t word = floats ? 0 : rng.uniform_int(0, (int64_t{1} << 32) - 1);
    for (int half = 0; floats && half < 2; ++half)
      word = word * 65536 + ir::f32_to_bf16(static_cast<float>(rng.uniform_int(-64, 64)));
    words.set(w, ir::scalar_int(ir::DType::kI32, word));
  }
  return words;
}

void expect_as_interpreted(const ir::Program& program, bool floats, Rng& rng) {
  std::vector<lower::Tensor> inputs;
  for (const ir::Buffer& input : program.inputs) inputs.push_back(random_words(input->shape, floats, rng));
  const auto want = lower::run(program, inputs);
  ASSERT_TRUE(want.ok()) << want.error().message();
  for (const target::Device& device : local_devices()) {
    const auto got = compile_and_run(program, device, inputs);
    ASSERT_TRUE(got.ok()) << got.error().message();
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_EQ(compare((*got)[i], (*want)[i], 0, 0), "") << device.name << ", output " << i;
  }
}

TEST(Matrix, AsInterpreted) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Rng rng(kSeed);
  for (int n = 0; n < 40; ++n) {
    const bool floats = rng.bernoulli(0.5);
    const Shape s{
        rng.uniform_int(2, 33), rng.uniform_int(1, 2),
        rng.uniform_int(2, 16), rng.bernoulli(0.5) ? 16 * rng.uniform_int(1, 3) : rng.uniform_int(1, 15),
        rng.uniform_int(1, 3),  floats ? "dot2" : "dot4"};
    SCOPED_TRACE(std::string(s.dot) + ": " + std::to_string(s.rows) + " x " + std::to_string(s.outer) +
                 " * " + std::to_string(s.columns) + ", " + std::to_string(s.blocks) + " * " +
                 std::to_string(s.steps) + " steps");
    expect_as_interpreted(product(s), floats, rng);
  }
}

// Products that the space plans for tiles are those that code generation recognizes.
TEST(Matrix, DefaultsOfTheSpaceAreOfTiles) {
  Rng rng(13);
  target::Device device = device_with("amx");
  for (const ir::Workload& workload :
       {small::bf16_matmul(128, 256, 512, true), small::bf16_conv2d(64, 56, 64, 3, 1, 1),
        small::bf16_conv2d(64, 56, 256, 1, 1, 0), small::quantized_matmul(256, 256, 256, rng),
        small::quantized_conv2d(128, 28, 128, 3, 1, 1, rng)}) {
    for (const int cores : {1, 2}) {
      device.cpu().cores = cores;
      const auto space = space::DesignSpace::build(workload, device, {});
      ASSERT_TRUE(space.ok()) << space.error().message();
      const auto trace = space->to_trace(space->default_candidate());
      ASSERT_TRUE(trace.ok()) << trace.error().message();
      const auto lowered = lower::lower(*sched::replay(workload, *trace));
      ASSERT_TRUE(lowered.ok()) << lowered.error().message();
      const auto code = codegen::emit_assembly(lowered->program, device, {});
      ASSERT_TRUE(code.ok()) << code.error().message();
      EXPECT_TRUE(std::regex_search(*code, std::regex("tdpb"))) << ir::print(lowered->program);
    }
  }
}

// Tiles of two shapes, alternating; and signed rows with unsigned columns.
TEST(Matrix, ShapesThatAlternate) {
  constexpr uint64_t kSeed = 12;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Rng rng(kSeed);
  const char* text = R"(program kernel {
  input A: i32[3, 32, 16]
  input B: i32[16, 16]
  output C: i32[3, 32, 16]
  output D: i32[3, 9, 11]
  for t in 3 {
    for i in 32 {
      for j in 16 {
        C[t, i, j] = 7i32
      }
    }
    for k in 16 {
      unrolled i in 32 {
        vectorized j in 16 {
          C[t, i, j] = C[t, i, j] + dot4(A[t, i, k], B[k, j])
        }
      }
    }
    for i in 9 {
      for j in 11 {
        D[t, i, j] = 0i32
      }
    }
    for k in 13 {
      unrolled i in 9 {
        vectorized j in 11 {
          D[t, i, j] = D[t, i, j] + dot4(B[k, j], A[t, i, k])
        }
      }
    }
  }
}
)";
  const auto program = ir::parse_program(text);
  ASSERT_TRUE(program.ok()) << program.error().message();
  expect_as_interpreted(*program, false, rng);
  const auto code = codegen::emit_assembly(*program, device_with("amx"), {});
  ASSERT_TRUE(code.ok()) << code.error().message();
  EXPECT_TRUE(std::regex_search(*code, std::regex("tdpbusd"))) << *code;
  EXPECT_TRUE(std::regex_search(*code, std::regex("tdpbsud"))) << *code;
}

}  // namespace
}  // namespace tensorsmith::test::matrix_test
