// The scalar semantics compared with C++ arithmetic, wide integers and the compiler's own
// conversions.
#include "ir/scalar.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace tensorsmith::ir::scalar_test {
namespace {

constexpr DType kInts[] = {DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                           DType::kI32, DType::kU32, DType::kI64, DType::kU64};
__extension__ using int128_t = __int128;

int128_t exact(DType t, int64_t v) {
  return t == DType::kU64 ? static_cast<int128_t>(static_cast<uint64_t>(v)) : static_cast<int128_t>(v);
}
// Wraps by arithmetic modulo 2^bits, unlike the implementation's casts.
int64_t wrapped(DType t, int128_t v) {
  const int bits = 8 * bytes_of(t);
  const int128_t modulus = static_cast<int128_t>(1) << bits;
  v %= modulus;
  if (v < 0) v += modulus;
  if (is_signed_int(t) && v >= modulus / 2) v -= modulus;
  return static_cast<int64_t>(static_cast<uint64_t>(v));
}
int128_t floor_div(int128_t a, int128_t b) {
  int128_t q = a / b;
  if (q * b != a && ((a < 0) != (b < 0))) --q;
  return q;
}
int64_t random_int(DType t, Rng& rng) {
  uint64_t bits = rng.next();
  switch (rng.below(4)) {
    case 0:
      bits = static_cast<uint64_t>(rng.uniform_int(-3, 3));
      break;
    case 1:
      bits = uint64_t{1} << (8 * bytes_of(t) - 1);
      bits += static_cast<uint64_t>(rng.uniform_int(-1, 1));
      break;
    default:
      break;
  }
  return wrapped(t, static_cast<int128_t>(static_cast<int64_t>(bits)));
}

TEST(Scalar, IntegerArithmeticMatchesWideIntegers) {
  Rng rng(1);
  for (DType t : kInts) {
    for (int n = 0; n < 4000; ++n) {
      const Scalar a{t, random_int(t, rng), 0};
      const Scalar b{t, random_int(t, rng), 0};
      const int128_t x = exact(t, a.i);
      const int128_t y = exact(t, b.i);
      const auto check = [&](BinaryOp op, int128_t expected) {
        const Scalar r = eval_binary(op, a, b);
        EXPECT_EQ(r.dtype, t);
        EXPECT_EQ(r.i, wrapped(t, expected)) << to_string(t) << " " << a.i << to_string(op) << b.i;
      };
      check(BinaryOp::kAdd, x + y);
      check(BinaryOp::kSub, x - y);
      check(BinaryOp::kDiv, y == 0 ? 0 : x / y);
      check(BinaryOp::kFloorDiv, y == 0 ? 0 : floor_div(x, y));
      check(BinaryOp::kFloorMod, y == 0 ? 0 : x - floor_div(x, y) * y);
      check(BinaryOp::kMin, x < y ? x : y);
      check(BinaryOp::kMax, x > y ? x : y);
      check(BinaryOp::kMul,
            t == DType::kU64
                ? wrapped(t, (x & UINT32_MAX) * y + (static_cast<int128_t>(wrapped(t, (x >> 32) * y)) << 32))
                : x * y);
      EXPECT_EQ(eval_binary(BinaryOp::kLt, a, b).i, x < y);
      EXPECT_EQ(eval_binary(BinaryOp::kGe, a, b).i, x >= y);
      EXPECT_EQ(eval_binary(BinaryOp::kEq, a, b).i, x == y);
      const int bits = 8 * bytes_of(t);
      const Scalar count{t, rng.uniform_int(0, bits + 2), 0};
      const auto c = static_cast<int>(count.i);
      EXPECT_EQ(eval_binary(BinaryOp::kShr, a, count).i,
                c >= bits ? 0 : wrapped(t, floor_div(x, static_cast<int128_t>(1) << c)));
      EXPECT_EQ(
          eval_binary(BinaryOp::kShl, a, count).i,
          c >= bits
              ? 0
              : static_cast<int64_t>(
                    eval_binary(BinaryOp::kMul, a, scalar_int(t, static_cast<int64_t>(uint64_t{1} << c))).i));
      EXPECT_EQ(eval_unary(UnaryOp::kNeg, a).i, wrapped(t, -x));
      EXPECT_EQ(eval_unary(UnaryOp::kBitNot, a).i, wrapped(t, -x - 1));
      for (DType to : kInts) EXPECT_EQ(eval_cast(to, a).i, wrapped(to, x));
    }
  }
}

TEST(Scalar, FloatArithmeticIsThatOfTheDtype) {
  Rng rng(2);
  for (int n = 0; n < 20000; ++n) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(rng.next()));
    const auto y = std::bit_cast<float>(static_cast<uint32_t>(rng.next()));
    const Scalar a = scalar_float(DType::kF32, x);
    const Scalar b = scalar_float(DType::kF32, y);
    const auto same = [](double got, float want) {
      return (std::isnan(got) && std::isnan(want)) || got == static_cast<double>(want);
    };
    EXPECT_TRUE(same(eval_binary(BinaryOp::kAdd, a, b).f, x + y));
    EXPECT_TRUE(same(eval_binary(BinaryOp::kMul, a, b).f, x * y));
    EXPECT_TRUE(same(eval_binary(BinaryOp::kDiv, a, b).f, x / y));
    EXPECT_TRUE(same(eval_binary(BinaryOp::kMin, a, b).f, std::isnan(x) || x < y ? x : y));
    EXPECT_TRUE(same(eval_binary(BinaryOp::kMax, a, b).f, std::isnan(x) || x > y ? x : y));
    EXPECT_EQ(eval_binary(BinaryOp::kNe, a, b).i, x != y);
    EXPECT_EQ(eval_binary(BinaryOp::kLe, a, b).i, x <= y);
    EXPECT_TRUE(same(eval_call(Intrinsic::kSqrt, a).f, std::sqrt(x)));
    EXPECT_TRUE(same(eval_call(Intrinsic::kFmod, a, b).f, std::fmod(x, y)));
    EXPECT_TRUE(same(eval_call(Intrinsic::kRound, a).f, std::nearbyint(x)));
  }
  for (double v : {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994, 1e300})
    EXPECT_EQ(eval_call(Intrinsic::kRound, scalar_float(DType::kF64, v)).f, std::nearbyint(v));
}

TEST(Scalar, NanWinsInMinMax) {
  const Scalar nan = scalar_float(DType::kF32, std::nan(""));
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {1.0, -1.0, infinity, -infinity}) {
    const Scalar other = scalar_float(DType::kF32, value);
    for (const BinaryOp op : {BinaryOp::kMin, BinaryOp::kMax}) {
      EXPECT_TRUE(std::isnan(eval_binary(op, nan, other).f));
      EXPECT_TRUE(std::isnan(eval_binary(op, other, nan).f));
    }
  }
}

TEST(Scalar, FloatToIntegerTruncatesAndSaturates) {
  const auto to = [](DType t, double v) { return eval_cast(t, scalar_float(DType::kF64, v)).i; };
  EXPECT_EQ(to(DType::kI8, 3.9), 3);
  EXPECT_EQ(to(DType::kI8, -3.9), -3);
  EXPECT_EQ(to(DType::kI8, 128), 127);
  EXPECT_EQ(to(DType::kI8, -128.5), -128);
  EXPECT_EQ(to(DType::kI8, -1000), -128);
  EXPECT_EQ(to(DType::kU8, -1), 0);
  EXPECT_EQ(to(DType::kU8, 255.9), 255);
  EXPECT_EQ(to(DType::kU8, 1e10), 255);
  EXPECT_EQ(to(DType::kI32, 1e10), INT32_MAX);
  EXPECT_EQ(to(DType::kU32, 4294967295.0), int64_t{4294967295});
  EXPECT_EQ(to(DType::kI64, 1e30), INT64_MAX);
  EXPECT_EQ(to(DType::kI64, -1e30), INT64_MIN);
  EXPECT_EQ(static_cast<uint64_t>(to(DType::kU64, 0x1p63)), uint64_t{1} << 63);
  EXPECT_EQ(static_cast<uint64_t>(to(DType::kU64, 1e30)), UINT64_MAX);
  EXPECT_EQ(to(DType::kI64, std::nan("")), 0);
  EXPECT_EQ(to(DType::kBool, 0.25), 1);
  EXPECT_EQ(to(DType::kBool, std::nan("")), 1);
  EXPECT_EQ(eval_cast(DType::kF32, {DType::kU64, -1, 0}).f, 0x1p64);
  EXPECT_EQ(eval_cast(DType::kF32, {DType::kI64, (int64_t{1} << 62) + (int64_t{1} << 38) + 1, 0}).f,
            static_cast<double>(static_cast<float>((int64_t{1} << 62) + (int64_t{1} << 38) + 1)));
}

TEST(Scalar, HalfPrecisionIsNearestEven) {
  // Every half survives the round trip, and the midpoint of two neighbours is rounded to the even
  // one.
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const auto bits = static_cast<uint16_t>(h);
    const float value = f16_to_f32(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
      continue;
    }
    EXPECT_EQ(f32_to_f16(value), bits);
    // The value from the format's definition.
    const int exponent = (bits >> 10) & 31;
    if (exponent != 31) {
      const double fraction = (bits & 0x3ff) / 1024.0;
      const double magnitude =
          exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
      EXPECT_EQ(static_cast<double>(value), (bits & 0x8000) != 0 ? -magnitude : magnitude);
    }
    if ((bits & 0x7fff) >= 0x7bff) continue;
    const float next = f16_to_f32(static_cast<uint16_t>(bits + 1));
    const float middle = (value + next) / 2;
    EXPECT_EQ(f32_to_f16(middle), (bits & 1) != 0 ? bits + 1 : bits);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, next)), bits + 1);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, value)), bits);
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::nanf("")))));
  EXPECT_EQ(eval_binary(BinaryOp::kAdd, scalar_float(DType::kF16, 2048), scalar_float(DType::kF16, 1)).f,
            2048);
}

TEST(Scalar, MemoryRoundTrip) {
  Rng rng(3);
  alignas(8) std::byte buffer[9];
  for (DType t : kInts) {
    for (int n = 0; n < 100; ++n) {
      const Scalar v{t, random_int(t, rng), 0};
      store_scalar(v, buffer + 1);
      EXPECT_EQ(load_scalar(t, buffer + 1).i, v.i);
    }
  }
  for (DType t : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const Scalar v = scalar_float(t, -0.1);
    store_scalar(v, buffer + 1);
    EXPECT_EQ(load_scalar(t, buffer + 1).f, v.f);
    EXPECT_NEAR(v.f, -0.1, 1e-3);
  }
}

TEST(Scalar, PairsOfShortFloats) {
  const auto bf16 = [](double x) { return scalar_float(DType::kBF16, x); };
  const Scalar a = eval_call(Intrinsic::kPair, bf16(1.0), bf16(-2.5));
  EXPECT_EQ(a.dtype, DType::kI32);
  EXPECT_EQ(a.i, static_cast<int32_t>(0xc0203f80U));
  const Scalar b = eval_call(Intrinsic::kPair, bf16(4.0), bf16(2.0));
  const Scalar sum = eval_call(Intrinsic::kDot2, a, b);
  EXPECT_EQ(sum.dtype, DType::kF32);
  EXPECT_EQ(sum.f, 4.0 - 5.0);
  // Products are not rounded to bf16.
  const Scalar c = eval_call(Intrinsic::kPair, bf16(0x1.fep0), bf16(0));
  EXPECT_EQ(eval_call(Intrinsic::kDot2, c, c).f, 0x1.fep0 * 0x1.fep0);
}

// The nearest number with 11 bits, computed with doubles; C's round() rounds the midpoint away from
// zero.
TEST(Scalar, Tf32HasTenBitsOfFraction) {
  const auto rounded = [](double x) {
    return eval_call(Intrinsic::kRoundTf32, scalar_float(DType::kF32, x)).f;
  };
  Rng rng(8);
  for (int n = 0; n < 10000; ++n) {
    const int exponent = static_cast<int>(rng.uniform_int(-126, 127));
    // Some values are midpoints.
    const double fraction = n % 3 == 0 ? (2048 + static_cast<double>(rng.below(1024)) * 2 + 1) / 4096
                                       : 0.5 + static_cast<double>(rng.below(1 << 23)) * 0x1p-24;
    const double x = std::ldexp(n % 2 == 0 ? fraction : -fraction, exponent + 1);
    EXPECT_EQ(rounded(x), std::ldexp(std::round(std::ldexp(x, 10 - exponent)), exponent - 10)) << x;
  }
  EXPECT_EQ(rounded(0x1.002p0), 0x1.004p0);
  EXPECT_EQ(rounded(0x1.001ffep0), 0x1p0);
  EXPECT_EQ(rounded(-0x1.fffp5), -0x1p6);
  EXPECT_EQ(rounded(0x1.fffffep127), std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounded(-std::numeric_limits<double>::infinity()), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(rounded(0x1p-149), 0);
  EXPECT_TRUE(std::signbit(rounded(-0.0)));
}

TEST(Scalar, IntegerIntrinsics) {
  EXPECT_EQ(eval_call(Intrinsic::kAbs, scalar_int(DType::kI8, -128)).i, -128);
  EXPECT_EQ(eval_call(Intrinsic::kAbs, scalar_int(DType::kI8, -5)).i, 5);
  EXPECT_EQ(eval_call(Intrinsic::kAbs, scalar_int(DType::kU8, 200)).i, 200);
  EXPECT_EQ(eval_call(Intrinsic::kSign, scalar_int(DType::kI32, -7)).i, -1);
  EXPECT_EQ(eval_call(Intrinsic::kSign, scalar_int(DType::kU64, -1)).i, 1);
}

TEST(Scalar, IntegerPowersAreExactAndWrap) {
  for (const DType t :
       {DType::kI8, DType::kU8, DType::kI16, DType::kI32, DType::kU32, DType::kI64, DType::kU64}) {
    for (int64_t base = is_signed_int(t) ? -12 : 0; base <= 12; ++base) {
      Scalar product = scalar_int(t, 1);
      for (int64_t exponent = 0; exponent <= 40; ++exponent) {
        EXPECT_EQ(eval_call(Intrinsic::kPow, scalar_int(t, base), scalar_int(t, exponent)).i, product.i)
            << base << "^" << exponent;
        product = eval_binary(BinaryOp::kMul, product, scalar_int(t, base));
      }
    }
  }
  const auto negative = [](int64_t base, int64_t exponent) {
    return eval_call(Intrinsic::kPow, scalar_int(DType::kI32, base), scalar_int(DType::kI32, exponent)).i;
  };
  EXPECT_EQ(negative(1, -5), 1);
  EXPECT_EQ(negative(-1, -5), -1);
  EXPECT_EQ(negative(-1, -4), 1);
  EXPECT_EQ(negative(2, -1), 0);
  EXPECT_EQ(negative(0, -1), 0);
}

}  // namespace
}  // namespace tensorsmith::ir::scalar_test
