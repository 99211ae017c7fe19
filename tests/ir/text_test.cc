// The text form: round trips of random workloads and programs, and the errors of malformed text.
#include "ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/scalar.h"
#include "ir/structural.h"
#include "support/naive_program.h"
#include "support/random_expr.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::ir::text_test {
namespace {

using ::testing::HasSubstr;

void expect_round_trip(const Workload& w) {
  const std::string text = print(w);
  const Result<Workload> parsed = parse_workload(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message() << "\n" << text;
  EXPECT_TRUE(structural_equal(*parsed, w)) << text;
  EXPECT_EQ(print(*parsed), text);
}

void expect_round_trip(const Program& p) {
  const std::string text = print(p);
  const Result<Program> parsed = parse_program(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message() << "\n" << text;
  EXPECT_TRUE(structural_equal(*parsed, p)) << text;
  EXPECT_EQ(print(*parsed), text);
}

TEST(Text, WorkloadsLookLikeThis) {
  EXPECT_EQ(print(test::standard::conv2d({})),
            "workload {\n"
            "  input X: f32[1, 4, 8, 8]\n"
            "  const W: f32[4, 4, 3, 3]\n"
            "  pad: f32[n: 1, c: 4, h: 10, w: 10] = select(h >= 1 && h < 9 && w >= 1 && w < 9, "
            "X[n, c, h - 1, w - 1], 0.0)\n"
            "  conv: f32[n: 1, f: 4, y: 8, x: 8] = sum{rc: 4, ry: 3, rx: 3} pad[n, rc, y + ry, x + rx] * "
            "W[f, rc, ry, rx]\n"
            "  output conv\n"
            "}\n");
  const OperationRef a = placeholder("A", DType::kI8, {3, 7});
  const Var i("i");
  const Var k("k");
  const OperationRef best = compute("best", {{i, 3}}, {{k, 7}}, Combiner::kArgMax,
                                    {load(a->output(), {i, k}), cast(DType::kI32, Expr(k))});
  EXPECT_EQ(print(Workload{{a, best}, best->outputs}),
            "workload {\n"
            "  input A: i8[3, 7]\n"
            "  best, best.index: (i8, i32)[i: 3] = argmax{k: 7} (A[i, k], i32(k))\n"
            "  output best, best.index\n"
            "}\n");
}

TEST(Text, ProgramsLookLikeThis) {
  const Buffer a = make_buffer("A", DType::kF32, {50});
  const Buffer c = make_buffer("C", DType::kF32, {50});
  const Buffer t = make_buffer("T", DType::kF32, {16}, MemoryScope::kLocal, {2});
  const Var o("o");
  const Var i("i");
  const Var j("i");
  const Expr at = Expr(o) * 16 + Expr(i);
  Stmt body =
      make_if(at < 50, make_store(t, {i}, load(a, {at})), make_store(t, {i}, float_imm(DType::kF32, -0.5)));
  body = make_for({.var = i, .extent = 16, .kind = ForKind::kVectorized, .body = body});
  const Stmt second = make_for({.var = j,
                                .extent = min(Expr(50) - Expr(o) * 16, 16),
                                .auto_unroll_max_step = 64,
                                .body = make_store(c, {Expr(o) * 16 + Expr(j)}, -load(t, {j}))});
  body = make_allocate(t, make_seq({body, second}));
  body = make_for({.var = o, .extent = 4, .kind = ForKind::kParallel, .body = body});
  const Program program{"copy", {a}, {c}, body};
  EXPECT_EQ(print(program),
            "program copy {\n"
            "  input A: f32[50]\n"
            "  output C: f32[50]\n"
            "  parallel o in 4 {\n"
            "    alloc T: f32[16] strides(2) local {\n"
            "      vectorized i in 16 {\n"
            "        if o * 16 + i < 50 {\n"
            "          T[i] = A[o * 16 + i]\n"
            "        } else {\n"
            "          T[i] = -0.5\n"
            "        }\n"
            "      }\n"
            "      for i in min(50 - o * 16, 16) auto_unroll 64 {\n"
            "        C[o * 16 + i] = -T[i]\n"
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
  expect_round_trip(program);
}

TEST(Text, RandomWorkloadsRoundTrip) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    expect_round_trip(test::random_workload(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(Text, RandomProgramsRoundTrip) {
  for (uint64_t seed = 0; seed < 700; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Program p = test::naive_program(test::random_workload(seed));
    for (int n = 0; n < 2; ++n) p = test::random_variation(p, rng);
    expect_round_trip(p);
    if (HasFatalFailure()) return;
  }
}

// Any expression as the value of a store.
TEST(Text, RandomExpressionsRoundTrip) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    static constexpr DType kTypes[] = {DType::kI64,  DType::kF32, DType::kF16, DType::kU8,
                                       DType::kBool, DType::kF64, DType::kU64, DType::kBF16};
    const DType dtype = kTypes[seed % std::size(kTypes)];
    test::ExprGenerator gen(seed, 3);
    const Buffer b = make_buffer("b", dtype, {});
    Stmt body = make_store(b, {}, gen.value(dtype, static_cast<int>(seed % 6)));
    for (const Var& var : gen.vars) body = make_for({.var = var, .extent = 3, .body = body});
    expect_round_trip(Program{"p", {}, {b}, body});
    if (HasFatalFailure()) return;
  }
}

TEST(Text, ConstantsRoundTripExactly) {
  const auto round_trip = [](const Expr& constant) {
    const Buffer b = make_buffer("b", constant.dtype(), {});
    const Program p{"p", {}, {b}, make_store(b, {}, constant)};
    expect_round_trip(p);
    return print(constant);
  };
  Rng rng(5);
  for (DType t : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (double v : {0.0, -0.0, 1.0, -1.5, 0.1, 1e-40, 5e-324, 3e38, 65504.0, std::nan(""),
                     std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
      round_trip(float_imm(t, v));
    for (int n = 0; n < 500; ++n) {
      uint64_t bits = rng.next();
      if (t == DType::kF64) {
        double v = 0;
        std::memcpy(&v, &bits, sizeof v);
        round_trip(float_imm(t, v));
      } else {
        round_trip(float_imm(t, load_scalar(t, &bits).f));
      }
    }
  }
  EXPECT_EQ(round_trip(float_imm(DType::kF32, 0.1)), "0.1");
  EXPECT_EQ(round_trip(float_imm(DType::kF64, 0.1)), "0.1f64");
  EXPECT_EQ(round_trip(float_imm(DType::kF32, -INFINITY)), "f32(-inf)");
  EXPECT_EQ(round_trip(int_imm(DType::kU64, -1)), "18446744073709551615u64");
  EXPECT_EQ(round_trip(Expr(INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(round_trip(int_imm(DType::kI8, -128)), "-128i8");
  EXPECT_EQ(round_trip(bool_imm(true)), "true");
  EXPECT_EQ(print(-float_imm(DType::kF32, 1)), "-(1.0)");
}

TEST(Text, GroupingFollowsStrength) {
  const Expr a = Var("a");
  const Expr b = Var("b");
  const Expr c = Var("c");
  EXPECT_EQ(print((a + b) * c), "(a + b) * c");
  EXPECT_EQ(print(a + b * c), "a + b * c");
  EXPECT_EQ(print(a - (b - c)), "a - (b - c)");
  EXPECT_EQ(print(a - b - c), "a - b - c");
  EXPECT_EQ(print(-(a + b)), "-(a + b)");
  EXPECT_EQ(print(-a * b), "-a * b");
  EXPECT_EQ(print(floordiv(a, b) * c), "a // b * c");
  EXPECT_EQ(print(floordiv(a, b * c)), "a // (b * c)");
  EXPECT_EQ(print(!(a < b && b < c)), "!(a < b && b < c)");
  EXPECT_EQ(print((a < b) == (b < c)), "(a < b) == (b < c)");
  EXPECT_EQ(print((a < b || b < c) && a == c), "(a < b || b < c) && a == c");
}

TEST(Text, StrangeNamesAreQuotedAndClashesNumbered) {
  const OperationRef x = placeholder("/conv/Relu \"out\"\n", DType::kF32, {2});
  const Var i("true");
  const OperationRef y = compute("sum", {{i, 2}}, {}, Combiner::kNone, {load(x->output(), {i})});
  const Var j("j");
  const Var k("j");
  const OperationRef z = compute("select", {{j, 2}}, {{k, 2}}, Combiner::kSum,
                                 {load(y->output(), {j}) * load(y->output(), {k})});
  const Workload w{{x, y, z}, {z->output()}};
  EXPECT_EQ(print(w),
            "workload {\n"
            "  input \"/conv/Relu \\\"out\\\"\\x0a\": f32[2]\n"
            "  sum: f32[\"true\": 2] = \"/conv/Relu \\\"out\\\"\\x0a\"[\"true\"]\n"
            "  select: f32[j: 2] = sum{j_1: 2} sum[j] * sum[j_1]\n"
            "  output select\n"
            "}\n");
  expect_round_trip(w);
}

TEST(Text, WorkloadErrorsHaveAPlace) {
  const auto message = [](const std::string& text) {
    const auto r = parse_workload(text);
    EXPECT_FALSE(r.ok()) << text;
    return r.ok() ? std::string() : r.error().message();
  };
  EXPECT_THAT(message(""), HasSubstr("1:1: expected 'workload', found the end"));
  EXPECT_THAT(message("workload {\n  input A f32[2]\n}"), HasSubstr("2:11: expected ':', found 'f32'"));
  EXPECT_THAT(message("workload { const(small) A: i8[2] }"),
              HasSubstr("1:18: expected 'reduced_range', found 'small'"));
  EXPECT_THAT(message("workload { const(reduced_range A: i8[2] }"), HasSubstr("expected ')', found 'A'"));
  EXPECT_THAT(message("workload { const(reduced_range) A: f32[2] }"),
              HasSubstr("only a constant of i8 or u8"));
  EXPECT_THAT(message("workload { input A: f33[2] }"), HasSubstr("expected a dtype"));
  EXPECT_THAT(message("workload { input A: f32[-2] }"), HasSubstr("expected a number of elements"));
  EXPECT_THAT(message("workload { input A: f32[99999999999999999999] }"), HasSubstr("does not fit"));
  EXPECT_THAT(message("workload { input A: f32[9999999999, 9999999999] }"),
              HasSubstr("1:18: operation 'A': its axes"));
  EXPECT_THAT(message("workload { input A: f32[2] B: f32[i: 2] = A[i, i] }"),
              HasSubstr("has 1 dimensions, not 2"));
  EXPECT_THAT(message("workload { input A: f32[2] B: f32[i: 2] = A[j] }"),
              HasSubstr("no variable is called j"));
  EXPECT_THAT(message("workload { B: f32[i: 2] = A[i] }"), HasSubstr("no tensor is called A"));
  EXPECT_THAT(message("workload { B: f32[i: 2] = i }"), HasSubstr("the value of B is i64, not f32"));
  EXPECT_THAT(message("workload { B: f32[i: 2] = f32(i) + 1 }"),
              HasSubstr("1:34: operands of '+' have dtypes f32 and i64"));
  EXPECT_THAT(message("workload { B: i64[i: 2] = 1 // 2.0 }"), HasSubstr("operands of '//'"));
  EXPECT_THAT(message("workload { B: f32[i: 2] = exp(i) }"), HasSubstr("'exp' is not defined for i64"));
  EXPECT_THAT(message("workload { B: f32[i: 2] = exp(1.0, 2.0) }"), HasSubstr("takes 1 arguments, not 2"));
  EXPECT_THAT(message("workload { B: f32[i: 2] = foo(i) }"), HasSubstr("no function is called 'foo'"));
  EXPECT_THAT(message("workload { B: f32[i: 2] = avg{k: 2} 1.0 }"),
              HasSubstr("no reduction is called 'avg'"));
  EXPECT_THAT(message("workload { B: i64[i: 2] = 5i9 }"), HasSubstr("unknown suffix"));
  EXPECT_THAT(message("workload { B: i8[i: 2] = 200i8 }"), HasSubstr("does not fit i8"));
  EXPECT_THAT(message("workload { B: f32[i: 2] = 1e99 }"), HasSubstr("does not fit f32"));
  EXPECT_THAT(message("workload { B: f16[i: 2] = 1e9f16 }"), HasSubstr("does not fit f16"));
  EXPECT_THAT(message("workload { B: i64[i: 2, i: 3] = i }"), HasSubstr("i is defined already"));
  EXPECT_THAT(message("workload { B: i64[i: 2] = i B: i64[i: 2] = i }"), HasSubstr("B is defined already"));
  EXPECT_THAT(message("workload { \"B: i64[i: 2] = i }"), HasSubstr("a quoted name without an end"));
  EXPECT_THAT(message("workload { output B }"), HasSubstr("no tensor is called B"));
  EXPECT_THAT(message("workload { } x"), HasSubstr("expected the end of the text"));
  EXPECT_THAT(message("workload { B: i64[i: 2] = " + std::string(100000, '(')),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(message("workload { B: i64[i: 2] = " + std::string(100000, '-') + "i }"),
              HasSubstr("nested too deeply"));
  std::string chain = "workload { B: i64[i: 2] = i";
  for (int n = 0; n < 100000; ++n) chain += " + i";
  EXPECT_THAT(message(chain + " }"), HasSubstr("nested too deeply"));
}

TEST(Text, ProgramErrorsHaveAPlace) {
  const auto message = [](const std::string& text) {
    const auto r = parse_program(text);
    EXPECT_FALSE(r.ok()) << text;
    if (!r.ok()) {
      EXPECT_EQ(r.error().code, ErrorCode::kCorrupt);
    }
    return r.ok() ? std::string() : r.error().message();
  };
  EXPECT_THAT(message("program"), HasSubstr("expected the program's name"));
  EXPECT_THAT(message("program p {"), HasSubstr("expected a statement, found the end"));
  EXPECT_THAT(message("program p { output C: f32[2] C[0] = 1 }"), HasSubstr("1:37: a value of dtype i64"));
  EXPECT_THAT(message("program p { output C: f32[2] C[0.5] = 1.0 }"), HasSubstr("not an integer"));
  EXPECT_THAT(message("program p { for i in 2 { } C[i] = 1 }"), HasSubstr("no tensor is called C"));
  EXPECT_THAT(message("program p { output C: i64[] for i in 2 { } C[] = i }"),
              HasSubstr("no variable is called i"));
  EXPECT_THAT(message("program p { for i in 2 { for i in 3 { } } }"), HasSubstr("defined already"));
  EXPECT_THAT(message("program p { for i on 2 { } }"), HasSubstr("expected 'in', found 'on'"));
  EXPECT_THAT(message("program p { for i in 2.0 { } }"), HasSubstr("a loop's extent is i64, not f32"));
  EXPECT_THAT(message("program p { if 1 { } }"), HasSubstr("a condition is bool, not i64"));
  EXPECT_THAT(message("program p { alloc T: f32[2] strides(1, 2) { } }"),
              HasSubstr("one stride per dimension"));
  EXPECT_THAT(message("program p { alloc T: f32[2] { } T[0] = 1.0 }"), HasSubstr("no tensor is called T"));
  std::string deep = "program p { ";
  for (int n = 0; n < 10000; ++n) deep += "if true { ";
  EXPECT_THAT(message(deep), HasSubstr("nested too deeply"));
}

TEST(Text, FreeFormAndComments) {
  const auto r = parse_workload("workload{input A:f32[2]# a comment }\nB:f32[i:2]=A[i]\r\n\toutput B}");
  ASSERT_TRUE(r.ok()) << r.error().message();
  EXPECT_EQ(r->operations.size(), 2u);
  // Keywords are allowed as names where only a name is possible.
  const auto p = parse_program(
      "program program { output for: i64[2] for[0] = 1 for if in 2 { for[if] = if } "
      "output[0] = 1 }");
  ASSERT_FALSE(p.ok());
  EXPECT_THAT(p.error().message(), HasSubstr("no tensor is called output"));
}

}  // namespace
}  // namespace tensorsmith::ir::text_test
