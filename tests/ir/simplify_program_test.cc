// Simplified programs compute the same as the originals, bit by bit, under the reference
// interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"
#include "ir/verify_program.h"
#include "lower/interpreter.h"
#include "support/naive_program.h"
#include "support/random_workload.h"
#include "support/simplify_stmt.h"

namespace tensorsmith::ir::simplify_program_test {
namespace {

std::vector<lower::Tensor> random_inputs(const Program& p, Rng& rng) {
  std::vector<lower::Tensor> out;
  for (const Buffer& b : p.inputs) out.push_back(lower::random_tensor(b->dtype, b->shape, rng));
  return out;
}

void expect_same_results(const Program& a, const Program& b, Rng& rng) {
  const std::vector<lower::Tensor> inputs = random_inputs(a, rng);
  const auto x = lower::run(a, inputs);
  const auto y = lower::run(b, inputs);
  ASSERT_TRUE(x.ok()) << x.error().message() << "\n" << print(a);
  ASSERT_TRUE(y.ok()) << y.error().message() << "\n" << print(a) << print(b);
  ASSERT_EQ(x->size(), y->size());
  for (size_t i = 0; i < x->size(); ++i) EXPECT_EQ((*x)[i].data, (*y)[i].data) << print(a) << print(b);
}

TEST(SimplifyProgram, RandomProgramsKeepTheirResults) {
  test::RandomWorkloadOptions options;
  options.max_iterations = 3000;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Program p = test::naive_program(test::random_workload(seed, options));
    for (uint64_t n = rng.below(4); n > 0; --n) p = test::random_variation(p, rng);
    Program simple = p;
    simple.body = test::simplify(p.body);
    expect_same_results(p, simple, rng);
    if (HasFailure()) return;
  }
}

TEST(SimplifyProgram, TheNaiveProgramComputesTheWorkload) {
  test::RandomWorkloadOptions options;
  options.max_iterations = 3000;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Workload w = test::random_workload(seed, options);
    const Program p = test::naive_program(w);
    const std::vector<lower::Tensor> inputs = random_inputs(p, rng);
    const auto x = lower::run(p, inputs);
    const auto y = lower::evaluate(w, inputs);
    ASSERT_TRUE(x.ok()) << x.error().message();
    ASSERT_TRUE(y.ok()) << y.error().message();
    for (size_t i = 0; i < x->size(); ++i) {
      for (int64_t k = 0; k < (*x)[i].num_elements(); ++k) {
        const Scalar a = (*x)[i].at(k);
        const Scalar b = (*y)[i].at(k);
        ASSERT_EQ(a.i, b.i) << print(p);
        const bool same = a.f == b.f || std::abs(a.f - b.f) <= 1e-4 * std::abs(b.f) + 1e-5;
        ASSERT_TRUE(same) << a.f << " and " << b.f << "\n" << print(p);
      }
    }
  }
}

Program program_of(const std::string& body) {
  auto r = parse_program("program p { input A: f32[50] output C: f32[50] " + body + " }");
  TS_CHECK(r.ok(), r.error().message());
  return *std::move(r);
}

void expect_simplified(const std::string& from, const std::string& to) {
  Program p = program_of(from);
  const Program before = p;
  p.body = test::simplify(p.body);
  EXPECT_EQ(print(p), print(program_of(to)));
  Program again = p;
  again.body = test::simplify(p.body);
  EXPECT_EQ(again.body, p.body);
}

TEST(SimplifyProgram, LoopsAndBranches) {
  expect_simplified("for i in 1 { C[i + 3] = A[i] }", "C[3] = A[0]");
  expect_simplified("parallel i in 1 { for j in 8 { C[i * 8 + j] = A[j + i] } }",
                    "for j in 8 { C[j] = A[j] }");
  expect_simplified("thread_x i in 1 { C[i + 3] = A[i] }", "thread_x i in 1 { C[3] = A[0] }");
  expect_simplified("for i in 0 { C[i] = 1.0 } C[0] = 0.0", "C[0] = 0.0");
  expect_simplified("for i in 5 { if i < 5 { C[i] = 1.0 } else { C[i] = 2.0 } }",
                    "for i in 5 { C[i] = 1.0 }");
  expect_simplified("for i in 5 { if i >= 5 { C[i] = 1.0 } else { C[i] = 2.0 } }",
                    "for i in 5 { C[i] = 2.0 }");
  expect_simplified("for i in 9 { if i < 5 { } else { C[i] = 2.0 } }",
                    "for i in 9 { if 4 < i { C[i] = 2.0 } }");
  expect_simplified("for i in 9 { if i < 5 { } }", "");
  expect_simplified("for i in 9 { alloc T: f32[4] { for j in 0 { T[j] = 1.0 } } } C[0] = 1.0", "C[0] = 1.0");
  // A guard inside the same guard, the same guard one tile further out, and the bounds that a guard
  // implies for its variables.
  expect_simplified(
      "for o in 4 { for i in 16 { if o * 16 + i < 50 { if i + o * 16 < 50 { C[o * 16 + i] = 1.0 } } } }",
      "for o in 4 { for i in 16 { if o * 16 + i < 50 { C[o * 16 + i] = 1.0 } } }");
  expect_simplified("for o in 4 { for i in 16 { if o * 16 + i < 48 { C[o * 16 + i] = 1.0 } } }",
                    "for o in 4 { for i in 16 { if o < 3 { C[o * 16 + i] = 1.0 } } }");
  expect_simplified("for i in 50 { if i < 10 { C[i] = select(i < 20, A[i // 16], A[0]) } }",
                    "for i in 50 { if i < 10 { C[i] = A[0] } }");
  expect_simplified("for i in 50 { if i == 7 { C[i] = A[i + 1] } }",
                    "for i in 50 { if i == 7 { C[7] = A[8] } }");
  expect_simplified("for i in 50 { for j in min(i + 1, 1) { C[i] = A[j] } }", "for i in 50 { C[i] = A[0] }");
  expect_simplified("alloc M: i64[1] { M[0] = 3 if M[0] < 5 { if M[0] < 6 { C[0] = 1.0 } } }",
                    "alloc M: i64[1] { M[0] = 3 if M[0] < 5 { C[0] = 1.0 } }");
  const char* changing = "alloc M: i64[1] { M[0] = 3 if M[0] < 5 { M[0] = 9 if M[0] < 6 { C[0] = 1.0 } } }";
  expect_simplified(changing, changing);
  expect_simplified("for o in 7 { for i in 8 { if o * 8 + i < 56 { C[0] = 1.0 } } }",
                    "for o in 7 { for i in 8 { C[0] = 1.0 } }");
}

}  // namespace
}  // namespace tensorsmith::ir::simplify_program_test
