// Structural equality and keys: independent of names, sensitive to everything else.
#include "ir/structural.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/text.h"
#include "support/naive_program.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::ir::structural_test {
namespace {

Workload workload_of(const std::string& text) {
  auto r = parse_workload(text);
  TS_CHECK(r.ok(), r.error().message());
  return *std::move(r);
}
Program program_of(const std::string& text) {
  auto r = parse_program(text);
  TS_CHECK(r.ok(), r.error().message());
  return *std::move(r);
}

constexpr char kWorkload[] =
    "workload { input A: f32[4, 6] const B: f32[6, 5] "
    "C: f32[i: 4, j: 5] = sum{k: 6} A[i, k] * B[k, j] "
    "D: f32[i: 4, j: 5] = max(C[i, j], 0.0) output D }";

TEST(Structural, NamesDoNotMatter) {
  const Workload a = workload_of(kWorkload);
  const Workload b = workload_of(
      "workload { input x: f32[4, 6] const y: f32[6, 5] "
      "z: f32[p: 4, q: 5] = sum{r: 6} x[p, r] * y[r, q] "
      "w: f32[q: 4, p: 5] = max(z[q, p], 0.0) output w }");
  EXPECT_TRUE(structural_equal(a, b));
  EXPECT_EQ(structural_key(a), structural_key(b));
  EXPECT_EQ(structural_key(a).size(), 32u);
  const Program p = program_of("program p { input A: f32[4] output C: f32[4] for i in 4 { C[i] = A[i] } }");
  const Program q = program_of("program q { input X: f32[4] output Y: f32[4] for j in 4 { Y[j] = X[j] } }");
  EXPECT_TRUE(structural_equal(p, q));
  EXPECT_EQ(structural_key(p), structural_key(q));
}

// The key is stored in databases, so it may change only together with the version in structural.cc.
TEST(Structural, KeyIsStable) {
  EXPECT_EQ(structural_key(workload_of(kWorkload)), "df2bb1eb0ca4fc146a162bac48fa991e");
}

TEST(Structural, EveryChangeOfAWorkloadMatters) {
  const std::string base = kWorkload;
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"f32[4, 6] const", "f64[4, 6] const"},
      {"const B", "input B"},
      {"sum{", "max{"},
      {"A[i, k] * B", "A[i, k] + B"},
      {"A[i, k] * B[k, j]", "B[k, j] * A[i, k]"},
      {"B[k, j]", "B[j, k]"},
      {"0.0", "-0.0"},
      {"0.0)", "1.0)"},
      {"max(C", "min(C"},
      {"output D", "output C"},
      {"output D", "output C, D"},
      {"output D", "output D, C"},
      {"D: f32[i: 4, j: 5] = max(C[i, j], 0.0)", "D: f32[i: 4, j: 5] = max(0.0, C[i, j])"},
      {"i: 4, j: 5] = max(C[i, j]", "i: 5, j: 4] = max(C[j, i]"},
      {"i: 4, j: 5] = max", "i: 4, j: 3] = max"},
      {"input A: f32[4, 6] const B: f32[6, 5]", "const B: f32[6, 5] input A: f32[4, 6]"},
      {"input A: f32[4, 6]", "input A: f32[4, 6] shared"},
      {"max(C[i, j], 0.0)", "exp(C[i, j])"},
      {"max(C[i, j], 0.0)", "select(i < 2, C[i, j], 0.0)"},
      {"max(C[i, j], 0.0)", "select(i <= 2, C[i, j], 0.0)"},
      {"max(C[i, j], 0.0)", "select(i < 3, C[i, j], 0.0)"},
      {"max(C[i, j], 0.0)", "f32(f16(C[i, j]))"},
      {"max(C[i, j], 0.0)", "f32(bf16(C[i, j]))"},
      {"max(C[i, j], 0.0)", "f32(inf)"},
      {"max(C[i, j], 0.0)", "f32(i)"},
      {"max(C[i, j], 0.0)", "f32(j)"},
      {"max(C[i, j], 0.0)", "-C[i, j]"},
  };
  std::set<std::string> keys{structural_key(workload_of(base))};
  for (const auto& [from, to] : changes) {
    std::string text = base;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    if (to.rfind("f64", 0) == 0) {
      for (size_t f = text.find("f32"); f != std::string::npos; f = text.find("f32"))
        text.replace(f, 3, "f64");
      for (size_t f = text.find("0.0)"); f != std::string::npos; f = text.find("0.0)"))
        text.replace(f, 4, "0f64)");
    }
    const auto changed = parse_workload(text);
    ASSERT_TRUE(changed.ok()) << text << ": " << changed.error().message();
    EXPECT_FALSE(structural_equal(*changed, workload_of(base))) << text;
    EXPECT_TRUE(keys.insert(structural_key(*changed)).second) << text;
  }
}

TEST(Structural, RangesOfConstantsMatter) {
  std::set<std::string> keys;
  for (const char* constant : {"input W", "const W", "const(reduced_range) W"}) {
    const std::string text =
        "workload { " + std::string(constant) + ": i8[4, 6] D: i32[i: 4, j: 6] = i32(W[i, j]) output D }";
    EXPECT_TRUE(keys.insert(structural_key(workload_of(text))).second) << text;
    EXPECT_NE(print(workload_of(text)).find(std::string(constant) + ": i8"), std::string::npos);
  }
}

TEST(Structural, EveryChangeOfAProgramMatters) {
  const std::string base =
      "program p { input A: f32[8] output C: f32[8] parallel o in 2 { alloc T: f32[4] { "
      "for i in 4 { if i < 3 { T[i] = A[o * 4 + i] } } for i in 4 auto_unroll 8 { C[o * 4 + i] = T[i] } } } "
      "}";
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"parallel o", "for o"},
      {"parallel o", "block_x o"},
      {"parallel o", "thread_x o"},
      {"for i", "vectorized i"},
      {"auto_unroll 8", "auto_unroll 9"},
      {"auto_unroll 8", ""},
      {"alloc T: f32[4]", "alloc T: f32[4] local"},
      {"alloc T: f32[4]", "alloc T: f32[4] strides(2)"},
      {"alloc T: f32[4]", "alloc T: f32[5]"},
      {"i < 3", "i < 2"},
      {"A[o * 4 + i] }", "A[o * 4 + i] } else { T[i] = A[0] }"},
      {"A[o * 4 + i]", "A[i * 4 + o]"},
      {"input A", "output A"},
      {"C[o * 4 + i] = T[i]", "C[o * 4 + i] = T[i] C[o * 4 + i] = T[i]"},
      {"T[i] = A", "C[i] = A"},
  };
  std::set<std::string> keys{structural_key(program_of(base))};
  for (const auto& [from, to] : changes) {
    std::string text = base;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const Program changed = program_of(text);
    EXPECT_FALSE(structural_equal(changed, program_of(base))) << text;
    EXPECT_TRUE(keys.insert(structural_key(changed)).second) << text;
  }
}

TEST(Structural, RandomWorkloadsHaveDifferentKeys) {
  std::set<std::string> texts;
  std::set<std::string> keys;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Workload w = test::random_workload(seed);
    texts.insert(print(w));
    keys.insert(structural_key(w));
    EXPECT_TRUE(structural_equal(w, test::random_workload(seed)));
    EXPECT_TRUE(structural_equal(test::naive_program(w), test::naive_program(w)));
  }
  // Different texts may differ only in names.
  EXPECT_LE(keys.size(), texts.size());
  EXPECT_GT(keys.size(), texts.size() - 20);
}

TEST(Structural, ExpressionsShareTheirFreeVariables) {
  const Var i("i");
  const Var j("i");
  EXPECT_TRUE(structural_equal(Expr(i) + 1, Expr(i) + 1));
  EXPECT_FALSE(structural_equal(Expr(i) + 1, Expr(j) + 1));
  EXPECT_FALSE(structural_equal(Expr(i) + 1, Expr(i) - 1));
  EXPECT_FALSE(structural_equal(Expr(1), int_imm(DType::kI32, 1)));
  EXPECT_FALSE(structural_equal(float_imm(DType::kF32, 0.0), float_imm(DType::kF32, -0.0)));
}

}  // namespace
}  // namespace tensorsmith::ir::structural_test
