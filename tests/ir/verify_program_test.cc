// The program verifier: programs that it rejects, and its proofs that accesses of valid programs
// are in range.
#include "ir/verify_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/structural.h"
#include "ir/text.h"
#include "support/naive_program.h"
#include "support/random_workload.h"
#include "support/simplify_stmt.h"
#include "support/standard_workloads.h"

namespace tensorsmith::ir::verify_program_test {
namespace {

using ::testing::HasSubstr;

Program program_of(const std::string& body) {
  auto r = parse_program(
      "program p { input A: f32[50] input N: i64[4] output C: f32[50] output D: f32[8, 8] " + body + " }");
  TS_CHECK(r.ok(), r.error().message());
  return *std::move(r);
}

std::string problem(const std::string& body) {
  const Status s = verify(program_of(body));
  EXPECT_FALSE(s.ok()) << body;
  if (s.ok()) return {};
  EXPECT_EQ(s.error().code, ErrorCode::kInvalidArgument);
  return s.error().message();
}

std::string unproven(const std::string& body) {
  EXPECT_TRUE(verify(program_of(body)).ok());
  const Status s = verify_in_bounds(program_of(body));
  EXPECT_FALSE(s.ok()) << body;
  if (s.ok()) return {};
  EXPECT_EQ(s.error().code, ErrorCode::kIllegal);
  return s.error().message();
}

void proven(const std::string& body) {
  const Status s = verify_in_bounds(program_of(body));
  EXPECT_TRUE(s.ok()) << body << "\n" << (s.ok() ? "" : s.error().message());
}

TEST(VerifyProgram, RejectsWhatIsMalformed) {
  EXPECT_THAT(problem("for i in 3 { A[i] = 1.0 }"), HasSubstr("for i / store to A: an input is written"));
  EXPECT_THAT(problem("for n in 3 { vectorized i in n { C[i] = 1.0 } }"), HasSubstr("only a serial loop"));
  EXPECT_THAT(problem("for n in 3 { parallel i in N[n] { C[i] = 1.0 } }"), HasSubstr("only a serial loop"));
  EXPECT_THAT(problem("vectorized v in 3 { parallel i in 4 { C[i] = 1.0 } }"),
              HasSubstr("vectorized v / parallel i: a parallel loop is inside a vectorized loop"));
  EXPECT_THAT(problem("vectorized v in 3 { thread_x i in 4 { C[i] = 1.0 } }"),
              HasSubstr("inside a vectorized"));
  EXPECT_THAT(problem("for i in -3 { C[i] = 1.0 }"), HasSubstr("the extent is negative"));
  EXPECT_THAT(problem("alloc T: f32[999999999, 999999999, 999999999] { C[0] = 1.0 }"),
              HasSubstr("'T' is too large"));
  EXPECT_THAT(problem("alloc T: f32[4] strides(999999999999999) { C[0] = 1.0 }"),
              HasSubstr("'T' is too large"));

  const Buffer c = make_buffer("C", DType::kF32, {4});
  const Var i("i");
  const Stmt store = make_store(c, {i}, float_imm(DType::kF32, 1));
  const auto message = [&](const Program& p) {
    const Status s = verify(p);
    EXPECT_FALSE(s.ok());
    return s.ok() ? std::string() : s.error().message();
  };
  const Stmt loop = make_for({.var = i, .extent = 4, .body = store});
  EXPECT_TRUE(verify(Program{"p", {}, {c}, loop}).ok());
  EXPECT_TRUE(verify(Program{"p", {}, {c}, make_seq({loop, loop})}).ok());
  EXPECT_THAT(message({"p", {}, {c}, store}), HasSubstr("'i' is used outside"));
  EXPECT_THAT(message({"p", {}, {}, loop}), HasSubstr("'C' is not declared"));
  EXPECT_THAT(message({"p", {c}, {c}, loop}), HasSubstr("parameter twice"));
  EXPECT_THAT(message({"p", {}, {c}, make_allocate(c, loop)}), HasSubstr("declared already"));
  EXPECT_THAT(message({"p", {}, {c}, make_for({.var = i, .extent = 4, .body = loop})}),
              HasSubstr("bound by"));
  EXPECT_THAT(message({"p", {}, {c}, make_for({.var = i, .extent = Expr(i) + 1, .body = store})}),
              HasSubstr("used outside"));
}

TEST(VerifyProgram, ProvesAccessesByExtentsAndGuards) {
  proven("for i in 50 { C[i] = A[i] }");
  proven("for o in 4 { for i in 16 { if o * 16 + i < 50 { C[o * 16 + i] = A[o * 16 + i] } } }");
  proven("for o in 4 { for i in 16 { if i + o * 16 < 48 { C[o * 16 + i + 2] = A[2 + i + o * 16] } } }");
  proven(
      "for o in 4 { for i in 16 { C[min(o * 16 + i, 49)] = select(o * 16 + i < 50, A[o * 16 + i], 0.0) } }");
  proven("for o in 4 { for i in min(50 - o * 16, 16) { C[o * 16 + i] = 1.0 } }");
  proven("for f in 64 { D[f // 8, f % 8] = 1.0 }");
  proven("for f in 70 { if f < 64 { D[f // 8, f % 8] = 1.0 } }");
  proven("for i in 52 { for r in 3 { C[0] = select(i + r >= 2 && i + r - 2 < 50, A[i + r - 2], 0.0) } }");
  proven("for i in 52 { for r in 3 { C[0] = select(!(i + r < 2) && i + r < 52, A[i + r - 2], 0.0) } }");
  proven("for i in 4 { C[N[i] % 50] = 1.0 C[max(min(N[i], 49), 0)] = 1.0 }");
  proven("for i in 4 { if N[i] >= 0 && N[i] < 50 { C[N[i]] = 1.0 } }");
  proven("for i in 60 { if i >= 50 { C[0] = 1.0 } else { C[i] = 1.0 } }");
  proven("for i in 60 { if i == 7 { C[i + 40] = 1.0 } }");
  proven("for i in 60 { if i < 0 { C[i + 400] = 1.0 } }");
  proven("for i in 0 { C[i + 400] = 1.0 }");
  proven(
      "for a in 5 { for b in 2 { for c in 4 { if a * 6 + b * 4 + c < 26 { C[a * 3 + b * 2 + c // 2] = A[12 - "
      "c // 2 - b * 2 - a * 3] } } } }");
  proven("for i in 100 { if i // 2 < 25 { C[i // 2] = A[i % 50] } }");
}

TEST(VerifyProgram, RefusesWhatItCannotProve) {
  EXPECT_EQ(unproven("for i in 51 { C[i] = 1.0 }"),
            "for i / store to C: cannot prove that index i of 'C' is in [0, 50); its range is [0, 50]");
  EXPECT_THAT(unproven("for i in 50 { C[i] = A[i + 1] }"), HasSubstr("index i + 1 of 'A'"));
  EXPECT_THAT(unproven("for i in 50 { C[i] = A[i - 1] }"), HasSubstr("its range is [-1, 48]"));
  EXPECT_THAT(unproven("for i in 60 { if i <= 50 { C[i] = 1.0 } }"), HasSubstr("[0, 50]"));
  EXPECT_THAT(unproven("for i in 60 { if i < 50 { C[i] = 1.0 } C[i] = 1.0 }"), HasSubstr("[0, 59]"));
  EXPECT_THAT(unproven("for i in 60 { if i < 50 { C[0] = 1.0 } else { C[i] = 1.0 } }"),
              HasSubstr("[50, 59]"));
  EXPECT_THAT(unproven("for i in 60 { if i < 50 || i > 52 { C[i] = 1.0 } }"), HasSubstr("cannot prove"));
  EXPECT_THAT(unproven("for i in 60 { C[0] = select(i < 50, 0.0, A[i]) }"), HasSubstr("cannot prove"));
  // Both sides of && are evaluated.
  EXPECT_THAT(unproven("for i in 60 { if i < 50 && A[i] > 0.0 { C[i] = 1.0 } }"),
              HasSubstr("if: cannot prove"));
  EXPECT_THAT(unproven("for i in 4 { C[N[i]] = 1.0 }"), HasSubstr("[-inf, inf]"));
  // A guard that reads a value that its body changes does not hold throughout the body.
  proven("alloc M: i64[4] { M[0] = 7 if M[0] >= 0 && M[0] < 50 { C[M[0]] = 1.0 } }");
  EXPECT_THAT(unproven("alloc M: i64[4] { M[0] = 7 if M[0] >= 0 && M[0] < 50 { M[0] = 99 C[M[0]] = 1.0 } }"),
              HasSubstr("[-inf, inf]"));
  EXPECT_THAT(unproven("for i in N[0] { C[i] = 1.0 }"), HasSubstr("[0, inf]"));
}

TEST(VerifyProgram, RandomProgramsAreProvenBeforeAndAfterSimplification) {
  for (uint64_t seed = 0; seed < 700; ++seed) {
    Rng rng(seed);
    Program p = test::naive_program(test::random_workload(seed));
    for (int n = 0; n < 3; ++n) {
      const Status s = verify_in_bounds(p);
      ASSERT_TRUE(s.ok()) << "seed " << seed << ": " << s.error().message() << "\n" << print(p);
      Program simple = p;
      simple.body = test::simplify(p.body);
      const Status t = verify_in_bounds(simple);
      ASSERT_TRUE(t.ok()) << "seed " << seed << ": " << t.error().message() << "\n"
                          << print(p) << print(simple);
      EXPECT_EQ(test::simplify(simple.body), simple.body) << "seed " << seed << "\n" << print(simple);
      p = test::random_variation(p, rng);
    }
  }
}

}  // namespace
}  // namespace tensorsmith::ir::verify_program_test
