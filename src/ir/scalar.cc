#include "ir/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tensorsmith::ir {

namespace {

int64_t wrap(DType t, uint64_t v) {
  TS_CHECK(!is_float(t), "an integer of a float dtype");
  if (t == DType::kBool) return v != 0 ? 1 : 0;
  const int unused = 64 - bits_of(t);
  v <<= unused;
  return is_signed_int(t) ? static_cast<int64_t>(v) >> unused : static_cast<int64_t>(v >> unused);
}

Scalar make_int(DType t, uint64_t v) { return {t, wrap(t, v), 0}; }
Scalar make_bool(bool v) { return {DType::kBool, v ? 1 : 0, 0}; }

double round_to(DType t, double v) {
  switch (t) {
    case DType::kF16:
      return f16_to_f32(f32_to_f16(static_cast<float>(v)));
    case DType::kBF16:
      return bf16_to_f32(f32_to_bf16(static_cast<float>(v)));
    case DType::kF32:
      return static_cast<float>(v);
    case DType::kF64:
      return v;
    case DType::kBool:
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
    case DType::kI32:
    case DType::kU32:
    case DType::kI64:
    case DType::kU64:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "rounding to an integer dtype");
}

template <typename T>
T float_arithmetic(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMin:
      return minimum(a, b);
    case BinaryOp::kMax:
      return maximum(a, b);
    default:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "operator '" + std::string(to_string(op)) + "' on floats");
}

template <typename T>
bool compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kGt:
      return a > b;
    case BinaryOp::kGe:
      return a >= b;
    default:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "not a comparison");
}

Scalar eval_int_binary(BinaryOp op, DType t, int64_t a, int64_t b) {
  // Values of every dtype except u64 are represented exactly by the int64.
  const bool wide_unsigned = t == DType::kU64;
  const uint64_t ua = a;
  const uint64_t ub = b;
  if (is_comparison(op)) return make_bool(wide_unsigned ? compare(op, ua, ub) : compare(op, a, b));
  switch (op) {
    case BinaryOp::kAdd:
      return make_int(t, ua + ub);
    case BinaryOp::kSub:
      return make_int(t, ua - ub);
    case BinaryOp::kMul:
      return make_int(t, ua * ub);
    case BinaryOp::kDiv:
      if (b == 0) return make_int(t, 0);
      if (wide_unsigned) return make_int(t, ua / ub);
      if (b == -1) return make_int(t, 0 - ua);
      return make_int(t, a / b);
    case BinaryOp::kFloorDiv: {
      if (b == 0) return make_int(t, 0);
      if (wide_unsigned) return make_int(t, ua / ub);
      if (b == -1) return make_int(t, 0 - ua);
      const int64_t q = a / b;
      return make_int(t, (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q);
    }
    case BinaryOp::kFloorMod: {
      if (b == 0 || b == -1) {
        if (wide_unsigned && b != 0) return make_int(t, ua % ub);
        return make_int(t, 0);
      }
      if (wide_unsigned) return make_int(t, ua % ub);
      const int64_t r = a % b;
      return make_int(t, (r != 0 && (r < 0) != (b < 0)) ? r + b : r);
    }
    case BinaryOp::kMin:
      return make_int(t, (wide_unsigned ? ua < ub : a < b) ? ua : ub);
    case BinaryOp::kMax:
      return make_int(t, (wide_unsigned ? ua > ub : a > b) ? ua : ub);
    case BinaryOp::kAnd:
      return make_bool(a != 0 && b != 0);
    case BinaryOp::kOr:
      return make_bool(a != 0 || b != 0);
    case BinaryOp::kBitAnd:
      return make_int(t, ua & ub);
    case BinaryOp::kBitOr:
      return make_int(t, ua | ub);
    case BinaryOp::kBitXor:
      return make_int(t, ua ^ ub);
    case BinaryOp::kShl:
      if (ub >= static_cast<uint64_t>(bits_of(t))) return make_int(t, 0);
      return make_int(t, ua << ub);
    case BinaryOp::kShr:
      if (ub >= static_cast<uint64_t>(bits_of(t))) return make_int(t, 0);
      return make_int(t, wide_unsigned ? ua >> ub : (a >> ub));
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "unknown binary operator");
}

double int_as_double(DType t, int64_t v) {
  return t == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
}

int64_t saturate_to_int(DType t, double v) {
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  if (t == DType::kU64) {
    if (v <= 0) return 0;
    if (v >= 0x1p64) return -1;
    return static_cast<uint64_t>(v);
  }
  const int bits = bits_of(t);
  if (is_unsigned_int(t)) {
    if (v <= 0) return 0;
    const double top = std::ldexp(1.0, bits);
    return v >= top ? static_cast<int64_t>((uint64_t{1} << bits) - 1) : static_cast<int64_t>(v);
  }
  const double top = std::ldexp(1.0, bits - 1);
  const int64_t highest = std::numeric_limits<int64_t>::max() >> (64 - bits);
  if (v >= top) return highest;
  if (v < -top) return -highest - 1;
  return static_cast<int64_t>(v);
}

// Drops 13 of the 23 fraction bits.
float round_tf32(float x) {
  if (!std::isfinite(x)) return x;
  constexpr uint32_t kLeftOut = (1U << 13) - 1;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + kLeftOut / 2 + 1) & ~kLeftOut);
}

double eval_math(Intrinsic intrinsic, double x, double y) {
  switch (intrinsic) {
    case Intrinsic::kAbs:
      return std::fabs(x);
    case Intrinsic::kSign:
      return x > 0 ? 1 : x < 0 ? -1 : x;
    case Intrinsic::kSqrt:
      return std::sqrt(x);
    case Intrinsic::kExp:
      return std::exp(x);
    case Intrinsic::kLog:
      return std::log(x);
    case Intrinsic::kSin:
      return std::sin(x);
    case Intrinsic::kCos:
      return std::cos(x);
    case Intrinsic::kTan:
      return std::tan(x);
    case Intrinsic::kAsin:
      return std::asin(x);
    case Intrinsic::kAcos:
      return std::acos(x);
    case Intrinsic::kAtan:
      return std::atan(x);
    case Intrinsic::kSinh:
      return std::sinh(x);
    case Intrinsic::kCosh:
      return std::cosh(x);
    case Intrinsic::kTanh:
      return std::tanh(x);
    case Intrinsic::kAsinh:
      return std::asinh(x);
    case Intrinsic::kAcosh:
      return std::acosh(x);
    case Intrinsic::kAtanh:
      return std::atanh(x);
    case Intrinsic::kErf:
      return std::erf(x);
    case Intrinsic::kFloor:
      return std::floor(x);
    case Intrinsic::kCeil:
      return std::ceil(x);
    case Intrinsic::kRound: {
      // Rounds half to even, independently of the floating-point environment.
      const double down = std::floor(x);
      const double rest = x - down;
      if (rest < 0.5) return std::copysign(down, x);
      if (rest > 0.5) return std::copysign(down + 1, x);
      if (!(rest == 0.5)) return x;  // NaN and infinities
      return std::copysign(std::fmod(down, 2) == 0 ? down : down + 1, x);
    }
    case Intrinsic::kTrunc:
      return std::trunc(x);
    case Intrinsic::kPow:
      return std::pow(x, y);
    case Intrinsic::kFmod:
      return std::fmod(x, y);
    case Intrinsic::kRoundTf32:
      return round_tf32(static_cast<float>(x));
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf:
    case Intrinsic::kDot4:
    case Intrinsic::kDot2:
    case Intrinsic::kPair:
    case Intrinsic::kDot2I16:
    case Intrinsic::kDot4Narrow:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "not a numeric intrinsic");
}

int64_t dot4(int64_t a, int64_t b) {
  int64_t sum = 0;
  for (int shift = 0; shift < 32; shift += 8)
    sum += static_cast<int64_t>(static_cast<uint8_t>(a >> shift)) * static_cast<int8_t>(b >> shift);
  return sum;
}

int64_t dot2_i16(int64_t a, int64_t b) {
  int64_t sum = 0;
  for (int shift = 0; shift < 32; shift += 16)
    sum += static_cast<int64_t>(static_cast<int16_t>(a >> shift)) * static_cast<int16_t>(b >> shift);
  return sum;
}

// Both products are exact in f64.
double dot2(int64_t a, int64_t b) {
  double sum = 0;
  for (int shift = 0; shift < 32; shift += 16)
    sum += static_cast<double>(bf16_to_f32(static_cast<uint16_t>(a >> shift))) *
           static_cast<double>(bf16_to_f32(static_cast<uint16_t>(b >> shift)));
  return sum;
}

uint64_t pair(double a, double b) {
  const auto bits = [](double x) { return static_cast<uint64_t>(f32_to_bf16(static_cast<float>(x))); };
  return bits(a) | bits(b) << 16;
}

}  // namespace

Scalar scalar_int(DType dtype, int64_t value) { return make_int(dtype, value); }

Scalar scalar_float(DType dtype, double value) { return {dtype, 0, round_to(dtype, value)}; }

Scalar eval_unary(UnaryOp op, Scalar a) {
  switch (op) {
    case UnaryOp::kNeg:
      if (is_float(a.dtype)) return {a.dtype, 0, -a.f};
      return make_int(a.dtype, 0 - static_cast<uint64_t>(a.i));
    case UnaryOp::kNot:
      return make_bool(a.i == 0);
    case UnaryOp::kBitNot:
      return make_int(a.dtype, ~a.i);
  }
  throw_internal_error(__FILE__, __LINE__, "unknown unary operator");
}

Scalar eval_binary(BinaryOp op, Scalar a, Scalar b) {
  TS_CHECK(a.dtype == b.dtype, "eval_binary: operands of different dtypes");
  if (!is_float(a.dtype)) return eval_int_binary(op, a.dtype, a.i, b.i);
  if (is_comparison(op)) return make_bool(compare(op, a.f, b.f));
  if (a.dtype == DType::kF64) return {a.dtype, 0, float_arithmetic(op, a.f, b.f)};
  return scalar_float(a.dtype, float_arithmetic(op, static_cast<float>(a.f), static_cast<float>(b.f)));
}

Scalar eval_cast(DType dtype, Scalar a) {
  if (dtype == a.dtype) return a;
  if (is_float(a.dtype)) {
    if (dtype == DType::kBool) return make_bool(a.f != 0);
    if (is_float(dtype)) return scalar_float(dtype, a.f);
    return {dtype, saturate_to_int(dtype, a.f), 0};
  }
  if (dtype == DType::kBool) return make_bool(a.i != 0);
  if (!is_float(dtype)) return make_int(dtype, static_cast<uint64_t>(a.i));
  if (dtype == DType::kF64) return {dtype, 0, int_as_double(a.dtype, a.i)};
  // Converted directly to f32: a detour through f64 would round twice.
  const float f =
      a.dtype == DType::kU64 ? static_cast<float>(static_cast<uint64_t>(a.i)) : static_cast<float>(a.i);
  return scalar_float(dtype, f);
}

namespace {

// Wraps at 64 bits, which gives the lower bits of the exact power.
uint64_t integer_power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) result *= base;
  }
  return result;
}

Scalar eval_integer_pow(Scalar a, Scalar b) {
  if (!is_signed_int(a.dtype) || b.i >= 0) return make_int(a.dtype, integer_power(a.i, b.i));
  if (a.i == 1) return a;
  return make_int(a.dtype, a.i != -1 ? 0 : (b.i & 1) != 0 ? ~uint64_t{0} : 1);
}

}  // namespace

Scalar eval_call(Intrinsic intrinsic, Scalar a, Scalar b) {
  if (intrinsic == Intrinsic::kIsNan) return make_bool(std::isnan(a.f));
  if (intrinsic == Intrinsic::kIsInf) return make_bool(std::isinf(a.f));
  if (!is_float(a.dtype)) {
    if (intrinsic == Intrinsic::kDot4 || intrinsic == Intrinsic::kDot4Narrow)
      return make_int(a.dtype, dot4(a.i, b.i));
    if (intrinsic == Intrinsic::kDot2I16) return make_int(a.dtype, dot2_i16(a.i, b.i));
    if (intrinsic == Intrinsic::kDot2) return scalar_float(DType::kF32, dot2(a.i, b.i));
    if (intrinsic == Intrinsic::kPow) return eval_integer_pow(a, b);
    const bool negative = is_signed_int(a.dtype) && a.i < 0;
    if (intrinsic == Intrinsic::kAbs) return negative ? eval_unary(UnaryOp::kNeg, a) : a;
    TS_CHECK(intrinsic == Intrinsic::kSign, "intrinsic is not defined for integers");
    return make_int(a.dtype, negative ? ~uint64_t{0} : (a.i != 0 ? 1 : 0));
  }
  if (intrinsic == Intrinsic::kPair) return make_int(DType::kI32, pair(a.f, b.f));
  const double r = eval_math(intrinsic, a.f, b.f);
  if (a.dtype == DType::kF64) return {a.dtype, 0, r};
  return scalar_float(a.dtype, static_cast<float>(r));
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = mantissa * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more round to infinity
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 puts the unit in the last place at 2^-24 and rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

namespace {

template <typename T>
T read(const void* element) {
  T v;
  std::memcpy(&v, element, sizeof(T));
  return v;
}
template <typename T>
void write(void* element, T v) {
  std::memcpy(element, &v, sizeof(T));
}

}  // namespace

Scalar load_scalar(DType dtype, const void* element) {
  switch (dtype) {
    case DType::kBool:
      return make_bool(read<uint8_t>(element) != 0);
    case DType::kI8:
      return {dtype, read<int8_t>(element), 0};
    case DType::kU8:
      return {dtype, read<uint8_t>(element), 0};
    case DType::kI16:
      return {dtype, read<int16_t>(element), 0};
    case DType::kU16:
      return {dtype, read<uint16_t>(element), 0};
    case DType::kI32:
      return {dtype, read<int32_t>(element), 0};
    case DType::kU32:
      return {dtype, read<uint32_t>(element), 0};
    case DType::kI64:
    case DType::kU64:
      return {dtype, read<int64_t>(element), 0};
    case DType::kF16:
      return {dtype, 0, f16_to_f32(read<uint16_t>(element))};
    case DType::kBF16:
      return {dtype, 0, bf16_to_f32(read<uint16_t>(element))};
    case DType::kF32:
      return {dtype, 0, read<float>(element)};
    case DType::kF64:
      return {dtype, 0, read<double>(element)};
  }
  throw_internal_error(__FILE__, __LINE__, "unknown dtype");
}

void store_scalar(Scalar value, void* element) {
  switch (value.dtype) {
    case DType::kBool:
    case DType::kI8:
    case DType::kU8:
      return write(element, static_cast<uint8_t>(value.i));
    case DType::kI16:
    case DType::kU16:
      return write(element, static_cast<uint16_t>(value.i));
    case DType::kI32:
    case DType::kU32:
      return write(element, static_cast<uint32_t>(value.i));
    case DType::kI64:
    case DType::kU64:
      return write(element, value.i);
    case DType::kF16:
      return write(element, f32_to_f16(static_cast<float>(value.f)));
    case DType::kBF16:
      return write(element, f32_to_bf16(static_cast<float>(value.f)));
    case DType::kF32:
      return write(element, static_cast<float>(value.f));
    case DType::kF64:
      return write(element, value.f);
  }
  throw_internal_error(__FILE__, __LINE__, "unknown dtype");
}

}  // namespace tensorsmith::ir
