// Inlined math functions against libm in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "codegen/runner.h"

namespace tensorsmith::math_test {
namespace {

using ir::DType;
using ir::Expr;
using ir::Intrinsic;
using lower::Tensor;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kCount = 20000;

struct Case {
  Intrinsic function;
  double low, high;     // interval of the dense samples
  double relative_f32;  // allowed relative error
  double relative_f64;
};

// 1 ulp of float is 1.2e-7 (relative, at most).
const Case kCases[] = {
    {Intrinsic::kExp, -110, 95, 1.5e-7, 1e-14},  {Intrinsic::kExp, -1, 1, 1.5e-7, 1e-15},
    {Intrinsic::kLog, 0, 1e6, 1.5e-7, 1e-15},    {Intrinsic::kLog, 0.5, 2, 2e-7, 1e-15},
    {Intrinsic::kTanh, -12, 12, 4e-7, 1e-14},    {Intrinsic::kTanh, -0.7, 0.7, 4e-7, 1e-14},
    {Intrinsic::kErf, -7, 7, 4e-7, 1e-14},       {Intrinsic::kErf, -1, 1, 4e-7, 1e-14},
    {Intrinsic::kSin, -10, 10, 2e-7, 1e-14},     {Intrinsic::kSin, -1e6, 1e6, 2e-7, 1e-10},
    {Intrinsic::kCos, -10, 10, 2e-7, 1e-13},     {Intrinsic::kCos, -1e6, 1e6, 2e-7, 1e-10},
    {Intrinsic::kTan, -10, 10, 1e-7, 1e-13},     {Intrinsic::kTan, -1e5, 1e5, 1e-7, 1e-10},
    {Intrinsic::kSin, -1e30, 1e30, 2e-7, 1e-13}, {Intrinsic::kSin, -4e8, 4e8, 2e-7, 1e-9},
    {Intrinsic::kCos, -3e38, 3e38, 2e-7, 1e-13}, {Intrinsic::kTan, -1e20, 1e20, 1e-7, 1e-13},
    {Intrinsic::kAsin, -1.1, 1.1, 1e-7, 1e-14},  {Intrinsic::kAcos, -1.1, 1.1, 1e-7, 1e-14},
    {Intrinsic::kAtan, -50, 50, 1e-7, 1e-14},    {Intrinsic::kAtan, -1, 1, 1e-7, 1e-14},
    {Intrinsic::kSinh, -92, 92, 1e-7, 1e-13},    {Intrinsic::kSinh, -1.2, 1.2, 1e-7, 1e-14},
    {Intrinsic::kCosh, -92, 92, 1e-7, 1e-13},    {Intrinsic::kAsinh, -1e3, 1e3, 1e-7, 1e-14},
    {Intrinsic::kAsinh, -1, 1, 1e-7, 1e-14},     {Intrinsic::kAcosh, 0.9, 3, 1e-7, 1e-14},
    {Intrinsic::kAcosh, 1, 1e5, 1e-7, 1e-14},    {Intrinsic::kAtanh, -1.1, 1.1, 1e-7, 1e-14},
    {Intrinsic::kSqrt, 0, 1e9, 1e-7, 1e-15},
};

std::vector<double> specials() {
  std::vector<double> v = {0.0,   kInf,   std::numeric_limits<double>::quiet_NaN(),
                           1.0,   0.5,    2.0,
                           1e-40, 1e-45,  1e-38,
                           1e-30, 1e-10,  1e-5,
                           1e30,  3.4e38, 88.7,
                           88.8,  103.9,  104.1,
                           709.7, 709.8,  745.1,
                           745.2, 1e-300, 5e-324,
                           1e300};
  const size_t n = v.size();
  for (size_t i = 0; i < n; ++i) v.push_back(-v[i]);
  return v;
}

ir::Program apply(Intrinsic f, DType t, int64_t n, int64_t lanes) {
  const ir::Buffer a = ir::make_buffer("a", t, {n});
  const ir::Buffer b = ir::make_buffer("b", t, {n});
  const ir::Var i("i");
  const ir::Var v("v");
  const Expr at = Expr(i) * lanes + Expr(v);
  std::vector<Expr> arguments = {ir::load(a, {at})};
  if (ir::arity(f) == 2) arguments.push_back(ir::load(b, {at}));
  const ir::Buffer out = ir::make_buffer("out", t, {n});
  ir::Stmt body = ir::make_store(out, {at}, ir::call(f, arguments));
  body = ir::make_for({v, lanes, ir::ForKind::kVectorized, {}, 0, body});
  return {"apply", {a, b}, {out}, ir::make_for({i, n / lanes, ir::ForKind::kSerial, {}, 0, body})};
}

// libm in double, rounded to the dtype.
double reference(Intrinsic f, double x, double y) {
  const ir::Scalar r = ir::eval_call(f, {DType::kF64, 0, x}, {DType::kF64, 0, y});
  return r.f;
}

void check(Intrinsic f, DType t, const std::vector<double>& xs, const std::vector<double>& ys,
           double relative) {
  const int64_t lanes = 16;
  const auto n = static_cast<int64_t>(xs.size() + lanes - 1) / lanes * lanes;
  Tensor a = Tensor::zeros(t, {n});
  Tensor b = Tensor::zeros(t, {n});
  for (size_t i = 0; i < xs.size(); ++i) {
    a.set(static_cast<int64_t>(i), ir::scalar_float(t, xs[i]));
    b.set(static_cast<int64_t>(i), ir::scalar_float(t, ys[i]));
  }
  const Tensor inputs[] = {a, b};
  for (const target::Device& device : test::local_devices()) {
    for (const int64_t width : {lanes, int64_t{1}}) {
      const ir::Program program = apply(f, t, n, width);
      const auto kernel = test::backend().compile(program, device, {});
      ASSERT_TRUE(kernel.ok()) << kernel.error().message();
      ASSERT_THAT(test::undefined_symbols(kernel->object), ::testing::IsEmpty());
      const auto loaded = test::backend().load(kernel->object, kernel->symbol);
      ASSERT_TRUE(loaded.ok()) << loaded.error().message();
      const Tensor got = test::run_kernel((*loaded)->function(), *kernel, program, inputs, 1)[0];
      double worst = 0;
      double worst_x = 0;
      for (size_t i = 0; i < xs.size(); ++i) {
        const double x = a.at(static_cast<int64_t>(i)).f;
        const double y = b.at(static_cast<int64_t>(i)).f;
        const double exact = reference(f, x, y);
        const double want = ir::scalar_float(t, exact).f;
        const double g = got.at(static_cast<int64_t>(i)).f;
        const auto where = [&] {
          return std::string(ir::to_string(f)) + "(" + std::to_string(x) + ", " + std::to_string(y) + ") " +
                 std::string(ir::to_string(t)) + " on " + device.name + " lanes " + std::to_string(width);
        };
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(g)) << where() << " got " << g;
          continue;
        }
        if (std::isinf(want) || std::isinf(g)) {
          ASSERT_EQ(g, want) << where();
          continue;
        }
        if (want == 0) {
          ASSERT_EQ(std::signbit(g), std::signbit(want)) << where();
        }
        // For subnormal results, half a unit of the smallest one is the best possible accuracy.
        const double absolute = t == DType::kF64 ? 1e-323 : 2.9e-45;
        const double error = std::fabs(g - exact);
        if (error <= absolute) continue;
        if (error / std::fabs(exact) > worst) {
          worst = error / std::fabs(exact);
          worst_x = x;
        }
      }
      EXPECT_LE(worst, relative) << ir::to_string(f) << " " << ir::to_string(t) << " on " << device.name
                                 << " lanes " << width << " worst at " << worst_x;
    }
  }
}

class Functions : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Functions, ::testing::ValuesIn(kCases), [](const auto& test_case) {
  return std::string(ir::to_string(test_case.param.function)) + "_" + std::to_string(test_case.index);
});

TEST_P(Functions, DenseSamples) {
  const Case& c = GetParam();
  Rng rng(11);
  std::vector<double> xs;
  for (int64_t i = 0; i < kCount; ++i) xs.push_back(c.low + (c.high - c.low) * rng.uniform());
  check(c.function, DType::kF32, xs, xs, c.relative_f32);
  check(c.function, DType::kF64, xs, xs, c.relative_f64);
}

TEST_P(Functions, SpecialValues) {
  const Case& c = GetParam();
  const std::vector<double> xs = specials();
  check(c.function, DType::kF32, xs, xs, std::max(c.relative_f32, 2e-7));
  check(c.function, DType::kF64, xs, xs, std::max(c.relative_f64, 1e-13));
}

// Each power of two, and neighbouring multiples of pi/2, for which the reduced angle is small.
TEST(Angles, AreReducedAtAnySize) {
  std::vector<double> xs;
  for (int exponent = -30; exponent <= 1023; ++exponent) {
    const double power = std::ldexp(1.0, exponent);
    const double multiple = std::nearbyint(std::min(power, 1e15) / (M_PI / 2)) * (M_PI / 2);
    for (const double x : {power, power * 1.7, multiple, multiple * std::max(1.0, power / 1e15)})
      xs.insert(xs.end(), {x, -x});
  }
  for (const Intrinsic f : {Intrinsic::kSin, Intrinsic::kCos, Intrinsic::kTan}) {
    std::vector<double> floats;
    for (const double x : xs)
      if (std::fabs(x) < 3.4e38) floats.push_back(static_cast<double>(static_cast<float>(x)));
    check(f, DType::kF32, floats, floats, 2e-7);
    std::vector<double> large;
    for (const double x : xs)
      if (std::fabs(x) >= 0x1p28) large.push_back(x);
    check(f, DType::kF64, large, large, 1e-13);
  }
}

TEST(Pow, MatchesLibm) {
  Rng rng(5);
  std::vector<double> xs;
  std::vector<double> ys;
  for (int64_t i = 0; i < kCount; ++i) {
    xs.push_back(std::exp(rng.normal() * 3));
    ys.push_back(rng.normal() * 8);
  }
  const std::vector<double> edge = {0.0,
                                    1.0,
                                    0.5,
                                    2.0,
                                    3.0,
                                    4.0,
                                    1.5,
                                    kInf,
                                    1e10,
                                    1e-10,
                                    4503599627370497.0,
                                    std::numeric_limits<double>::quiet_NaN()};
  for (double x : edge)
    for (double y : edge)
      for (double sx : {1.0, -1.0})
        for (double sy : {1.0, -1.0}) {
          xs.push_back(x * sx);
          ys.push_back(y * sy);
        }
  check(Intrinsic::kPow, DType::kF32, xs, ys, 1e-7);
  check(Intrinsic::kPow, DType::kF64, xs, ys, 1e-12);
}

TEST(Fmod, IsExactForAnyQuotient) {
  Rng rng(6);
  std::vector<double> xs;
  std::vector<double> ys;
  for (int64_t i = 0; i < 4000; ++i) {
    xs.push_back(rng.normal() * std::exp2(rng.uniform_int(-40, 100)));
    ys.push_back(rng.normal() * std::exp2(rng.uniform_int(-40, 100)));
  }
  for (double x : specials())
    for (double y : specials()) {
      xs.push_back(x);
      ys.push_back(y);
    }
  check(Intrinsic::kFmod, DType::kF64, xs, ys, 0);
  check(Intrinsic::kFmod, DType::kF32, xs, ys, 0);
}

// Calls check(x, f(x), context) for f in f32, in vectors and scalars, on each instruction set.
void check_function(const std::function<Expr(const Expr&)>& f, std::vector<double> xs,
                    const std::function<void(double x, double got, const std::string& context)>& check) {
  const int64_t lanes = 16;
  while (std::ssize(xs) % lanes != 0) xs.push_back(0);
  const auto n = std::ssize(xs);
  const ir::Buffer in = ir::make_buffer("in", DType::kF32, {n}),
                   out = ir::make_buffer("out", DType::kF32, {n});
  const ir::Var i("i"), v("v");
  Tensor input = Tensor::zeros(DType::kF32, {n});
  for (int64_t k = 0; k < n; ++k) input.set(k, ir::scalar_float(DType::kF32, xs[static_cast<size_t>(k)]));
  const Tensor inputs[] = {input};
  for (const int64_t width : {lanes, int64_t{1}}) {
    const Expr at = Expr(i) * width + Expr(v);
    ir::Stmt body = ir::make_store(out, {at}, f(ir::load(in, {at})));
    body = ir::make_for({v, width, ir::ForKind::kVectorized, {}, 0, body});
    const ir::Program program{
        "function", {in}, {out}, ir::make_for({i, n / width, ir::ForKind::kSerial, {}, 0, body})};
    for (const target::Device& device : test::local_devices()) {
      const auto kernel = test::backend().compile(program, device, {});
      ASSERT_TRUE(kernel.ok()) << kernel.error().message();
      const auto loaded = test::backend().load(kernel->object, kernel->symbol);
      ASSERT_TRUE(loaded.ok()) << loaded.error().message();
      const Tensor got = test::run_kernel((*loaded)->function(), *kernel, program, inputs, 1)[0];
      for (int64_t k = 0; k < n; ++k)
        check(input.at(k).f, got.at(k).f,
              std::to_string(input.at(k).f) + " on " + device.name + " lanes " + std::to_string(width));
    }
  }
}

// 1 / (1 + e^-x) uses a shorter exponential. Below -87, the result is subnormal and may be 0.
TEST(Logistic, AgreesWithLibmAndKeepsTheLimits) {
  Rng rng(12);
  std::vector<double> xs = specials();
  for (int64_t i = 0; i < kCount; ++i) xs.push_back(-95 + 190 * rng.uniform());
  for (int64_t i = 0; i < kCount; ++i) xs.push_back(-2 + 4 * rng.uniform());
  const Expr one = ir::float_imm(DType::kF32, 1);
  check_function([&](const Expr& x) { return one / (one + ir::call(Intrinsic::kExp, {-x})); }, xs,
                 [](double x, double got, const std::string& context) {
                   const double want = 1 / (1 + std::exp(-x));
                   if (std::isnan(x)) {
                     EXPECT_TRUE(std::isnan(got)) << context;
                   } else if (std::isinf(x)) {
                     EXPECT_EQ(got, want) << context;
                   } else {
                     EXPECT_NEAR(got, want, x < -87 ? 1.2e-38 : 4e-7 * want) << context;
                   }
                 });
}

// e^x, or 0 where that is subnormal, as in a softmax: the exponential needs no correct lower end,
// and its upper end is that of e^x.
TEST(ExpOrZero, AgreesWithLibmAndKeepsTheLimits) {
  constexpr double kLeast = -86.5;
  Rng rng(13);
  std::vector<double> xs = specials();
  for (const double x : {kLeast, -86.6, -87.3, -100., -104., 88.3, 88.5, 88.7, 88.8, 89., 1000.})
    xs.push_back(x);
  for (int64_t i = 0; i < kCount; ++i) xs.push_back(-110 + 205 * rng.uniform());
  for (int64_t i = 0; i < kCount; ++i) xs.push_back(-2 + 4 * rng.uniform());
  check_function(
      [&](const Expr& x) {
        return ir::select(x < ir::float_imm(DType::kF32, kLeast), ir::float_imm(DType::kF32, 0),
                          ir::call(Intrinsic::kExp, {x}));
      },
      xs,
      [](double x, double got, const std::string& context) {
        const double want = x < kLeast ? 0 : std::exp(x);
        constexpr double kLargest = std::numeric_limits<float>::max();
        if (std::isnan(x)) {
          EXPECT_TRUE(std::isnan(got)) << context;
        } else if (std::abs(want / kLargest - 1) > 1e-6) {  // otherwise it may be infinite or not
          if (want > kLargest) {
            EXPECT_EQ(got, std::numeric_limits<double>::infinity()) << context;
          } else {
            EXPECT_NEAR(got, want, 4e-7 * want) << context;
          }
        }
      });
}

}  // namespace
}  // namespace tensorsmith::math_test
