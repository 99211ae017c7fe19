// Every operator on every dtype, in scalar code and in vectors, against the scalar semantics of ir.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codegen/runner.h"
#include "ir/scalar.h"

namespace tensorsmith::expr_test {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using lower::Tensor;

constexpr DType kDtypes[] = {DType::kBool, DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                             DType::kI32,  DType::kU32, DType::kI64, DType::kU64, DType::kF16,
                             DType::kBF16, DType::kF32, DType::kF64};

// Values around the edges of a dtype, then random ones.
std::vector<ir::Scalar> samples(DType t, size_t count, Rng& rng) {
  std::vector<ir::Scalar> out;
  if (ir::is_float(t)) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    for (double v : {0.0,          -0.0,
                     1.0,          -1.0,
                     0.5,          1.5,
                     2.5,          -2.5,
                     127.5,        255.9,
                     -128.5,       65504.0,
                     65520.0,      1e-7,
                     6e-8,         1e-40,
                     3e38,         1e300,
                     2147483648.0, -2147483649.0,
                     9.3e18,       -9.3e18,
                     1.9e19,       kInf,
                     -kInf,        std::numeric_limits<double>::quiet_NaN()})
      out.push_back(ir::scalar_float(t, v));
    while (out.size() < count)
      out.push_back(ir::scalar_float(t, rng.normal() * std::exp2(rng.uniform_int(-20, 20))));
  } else {
    for (int64_t v : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{2}, int64_t{7}, int64_t{8}, int64_t{31},
                      int64_t{32}, int64_t{63}, int64_t{64}, int64_t{127}, int64_t{-128}, int64_t{32767},
                      int64_t{-32768}, int64_t{INT32_MAX}, int64_t{INT32_MIN}, INT64_MAX, INT64_MIN})
      out.push_back(ir::scalar_int(t, v));
    while (out.size() < count)
      out.push_back(ir::scalar_int(t, static_cast<int64_t>(rng.next()) >> rng.below(64)));
  }
  out.resize(count);
  return out;
}

// All pairs of samples, as two columns.
std::pair<Tensor, Tensor> pairs(DType ta, DType tb, Rng& rng) {
  const auto a = samples(ta, 30, rng);
  const auto b = samples(tb, 30, rng);
  Tensor x = Tensor::zeros(ta, {900});
  Tensor y = Tensor::zeros(tb, {900});
  for (int64_t i = 0; i < 900; ++i) {
    x.set(i, a[static_cast<size_t>(i / 30)]);
    y.set(i, b[static_cast<size_t>(i % 30)]);
  }
  return {x, y};
}

// An expression of two operands, and its result by the scalar semantics.
struct Check {
  std::string what;
  std::function<Expr(Expr, Expr)> fn;
  std::function<ir::Scalar(ir::Scalar, ir::Scalar)> reference;
};

// out_k[i] = fn_k(a[i], b[i]) for 900 elements, `lanes` at a time, all in one kernel.
ir::Program elementwise(DType ta, DType tb, int64_t lanes, const std::vector<Check>& checks) {
  const ir::Buffer a = ir::make_buffer("a", ta, {900});
  const ir::Buffer b = ir::make_buffer("b", tb, {900});
  ir::Program program{"elementwise", {a, b}, {}, nullptr};
  std::vector<ir::Stmt> loops;
  for (const Check& check : checks) {
    const ir::Var i("i");
    const ir::Var v("v");
    const Expr at = Expr(i) * lanes + Expr(v);
    const Expr value = check.fn(ir::load(a, {at}), ir::load(b, {at}));
    const ir::Buffer out = ir::make_buffer("out", value.dtype(), {900});
    program.outputs.push_back(out);
    const ir::Stmt vector =
        ir::make_for({v, lanes, ir::ForKind::kVectorized, {}, 0, ir::make_store(out, {at}, value)});
    loops.push_back(ir::make_for({i, 900 / lanes, ir::ForKind::kSerial, {}, 0, vector}));
  }
  program.body = ir::make_seq(loops);
  return program;
}

// Subnormal results of bf16 may be flushed to zero, even if the smallest normal number is the
// nearest.
ir::Scalar as_computed(ir::Scalar want, const ir::Scalar& got) {
  const bool subnormal = want.dtype == DType::kBF16 && std::abs(want.f) <= 0x1p-126;
  if (subnormal && got.f == 0) want.f = std::copysign(0.0, want.f);
  return want;
}

void compare(const Check& check, const Tensor& x, const Tensor& y, const Tensor& got,
             const std::string& where) {
  for (int64_t i = 0; i < 900; ++i) {
    const ir::Scalar g = got.at(i);
    const ir::Scalar want = as_computed(check.reference(x.at(i), y.at(i)), g);
    ASSERT_TRUE(test::close(g, want, 0, 0))
        << check.what << " " << where << " element " << i << ": a " << x.at(i).f << "/" << x.at(i).i << " b "
        << y.at(i).f << "/" << y.at(i).i << " got " << g.f << "/" << g.i << " want " << want.f << "/"
        << want.i;
    // If zeros of different sign are compared, either is a valid minimum and maximum.
    if (ir::is_float(want.dtype) && want.f == 0 && check.what != "min" && check.what != "max") {
      ASSERT_EQ(std::signbit(g.f), std::signbit(want.f)) << check.what << " " << where << " element " << i;
    }
  }
}

void run(DType ta, DType tb, const std::vector<Check>& checks) {
  if (checks.empty()) return;
  Rng rng(7);
  const auto [x, y] = pairs(ta, tb, rng);
  const Tensor inputs[] = {x, y};
  for (const target::Device& device : test::local_devices()) {
    for (const int64_t lanes : {1, 5, 20}) {
      const std::string where = std::string(ir::to_string(ta)) + "," + std::string(ir::to_string(tb)) +
                                " on " + device.name + " lanes " + std::to_string(lanes);
      const ir::Program program = elementwise(ta, tb, lanes, checks);
      const auto kernel = test::backend().compile(program, device, {});
      ASSERT_TRUE(kernel.ok()) << kernel.error().message();
      ASSERT_THAT(test::undefined_symbols(kernel->object), ::testing::IsEmpty()) << where;
      const auto loaded = test::backend().load(kernel->object, kernel->symbol);
      ASSERT_TRUE(loaded.ok()) << loaded.error().message();
      const auto got = test::run_kernel((*loaded)->function(), *kernel, program, inputs, 1);
      for (size_t c = 0; c < checks.size(); ++c) compare(checks[c], x, y, got[c], where);
    }
  }
}

bool allowed(BinaryOp op, DType t) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return t != DType::kBool;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      return ir::is_int(t);
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      return t == DType::kBool;
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
      return t != DType::kBool;
  }
  return false;
}

class Operators : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(AllDtypes, Operators, ::testing::ValuesIn(kDtypes),
                         [](const auto& test_case) { return std::string(ir::to_string(test_case.param)); });

TEST_P(Operators, Binary) {
  const DType t = GetParam();
  std::vector<Check> checks;
  for (int o = 0; o <= static_cast<int>(BinaryOp::kShr); ++o) {
    const auto op = static_cast<BinaryOp>(o);
    if (!allowed(op, t)) continue;
    checks.push_back({std::string(ir::to_string(op)), [=](Expr a, Expr b) { return ir::binary(op, a, b); },
                      [=](ir::Scalar a, ir::Scalar b) { return ir::eval_binary(op, a, b); }});
  }
  run(t, t, checks);
}

TEST_P(Operators, DivisionByConstants) {
  const DType t = GetParam();
  if (!ir::is_int(t)) return;
  std::vector<Check> checks;
  for (const BinaryOp op : {BinaryOp::kDiv, BinaryOp::kFloorDiv, BinaryOp::kFloorMod}) {
    for (const int64_t divisor : {0, 1, -1, 3, 8, -7}) {
      const ir::Scalar d = ir::scalar_int(t, divisor);
      checks.push_back({std::string(ir::to_string(op)) + " " + std::to_string(divisor),
                        [=](Expr a, Expr) { return ir::binary(op, a, ir::int_imm(t, d.i)); },
                        [=](ir::Scalar a, ir::Scalar) { return ir::eval_binary(op, a, d); }});
    }
  }
  run(t, t, checks);
}

TEST_P(Operators, UnaryAndSimpleIntrinsics) {
  const DType t = GetParam();
  std::vector<Check> checks;
  if (t != DType::kBool) {
    checks.push_back({"neg", [](Expr a, Expr) { return -a; },
                      [](ir::Scalar a, ir::Scalar) { return ir::eval_unary(ir::UnaryOp::kNeg, a); }});
    for (const ir::Intrinsic f : {ir::Intrinsic::kAbs, ir::Intrinsic::kSign}) {
      checks.push_back({std::string(ir::to_string(f)), [=](Expr a, Expr) { return ir::call(f, {a}); },
                        [=](ir::Scalar a, ir::Scalar) { return ir::eval_call(f, a); }});
    }
  }
  if (ir::is_int(t)) {
    checks.push_back({"bitnot", [](Expr a, Expr) { return ir::unary(ir::UnaryOp::kBitNot, a); },
                      [](ir::Scalar a, ir::Scalar) { return ir::eval_unary(ir::UnaryOp::kBitNot, a); }});
  }
  if (t == DType::kBool) {
    checks.push_back({"not", [](Expr a, Expr) { return !a; },
                      [](ir::Scalar a, ir::Scalar) { return ir::eval_unary(ir::UnaryOp::kNot, a); }});
  }
  if (ir::is_float(t)) {
    for (const ir::Intrinsic f :
         {ir::Intrinsic::kFloor, ir::Intrinsic::kCeil, ir::Intrinsic::kRound, ir::Intrinsic::kTrunc,
          ir::Intrinsic::kIsNan, ir::Intrinsic::kIsInf, ir::Intrinsic::kSqrt, ir::Intrinsic::kFmod}) {
      checks.push_back(
          {std::string(ir::to_string(f)),
           [=](Expr a, Expr b) { return ir::arity(f) == 2 ? ir::call(f, {a, b}) : ir::call(f, {a}); },
           [=](ir::Scalar a, ir::Scalar b) { return ir::eval_call(f, a, b); }});
    }
  }
  run(t, t, checks);
}

TEST_P(Operators, Select) {
  const DType t = GetParam();
  run(DType::kBool, t,
      {{"select", [=](Expr a, Expr b) { return ir::select(a, b, ir::make_const(t, 1)); },
        [=](ir::Scalar a, ir::Scalar b) {
          return a.i != 0 ? b : ir::is_float(t) ? ir::scalar_float(t, 1) : ir::scalar_int(t, 1);
        }}});
}

TEST(Pairs, HoldTheBitsOfBothElements) {
  run(DType::kBF16, DType::kBF16,
      {{"pair", [](Expr a, Expr b) { return ir::call(ir::Intrinsic::kPair, {a, b}); },
        [](ir::Scalar a, ir::Scalar b) { return ir::eval_call(ir::Intrinsic::kPair, a, b); }}});
}

TEST(RoundTf32, IsThatOfTheScalars) {
  run(DType::kF32, DType::kF32,
      {{"round_tf32", [](Expr a, Expr) { return ir::call(ir::Intrinsic::kRoundTf32, {a}); },
        [](ir::Scalar a, ir::Scalar) { return ir::eval_call(ir::Intrinsic::kRoundTf32, a); }}});
}

TEST_P(Operators, Casts) {
  const DType from = GetParam();
  std::vector<Check> checks;
  for (const DType to : kDtypes) {
    checks.push_back({"cast to " + std::string(ir::to_string(to)),
                      [=](Expr a, Expr) { return ir::cast(to, a); },
                      [=](ir::Scalar a, ir::Scalar) { return ir::eval_cast(to, a); }});
  }
  run(from, from, checks);
}

}  // namespace
}  // namespace tensorsmith::expr_test
