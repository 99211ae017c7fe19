/* What the generated kernels use beside the operators of C99. The meanings are those of Tensorsmith's expressions:
   integers wrap around, a division by zero gives 0, conversions saturate, a NaN wins in minima and maxima. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* TENSORSMITH_VECTORS=0 chooses plain C99 where the compiler knows vectors. */
#ifndef TENSORSMITH_VECTORS
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 9)
#define TENSORSMITH_VECTORS 1
#else
#define TENSORSMITH_VECTORS 0
#endif
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TS_ALIGNED __attribute__((aligned(TENSORSMITH_BUFFER_ALIGNMENT)))
#else
#define TS_ALIGNED
#endif

/* --- integers: name, type, its unsigned type, the type that it is computed in, bits */
#define TS_INTEGER(n, type, utype, wide, bits)                                               \
  static inline type ts_add_##n(type a, type b) { return (type)(utype)((wide)a + (wide)b); } \
  static inline type ts_sub_##n(type a, type b) { return (type)(utype)((wide)a - (wide)b); } \
  static inline type ts_mul_##n(type a, type b) { return (type)(utype)((wide)a * (wide)b); } \
  static inline type ts_neg_##n(type a) { return (type)(utype)((wide)0 - (wide)a); }         \
  static inline type ts_min_##n(type a, type b) { return a < b ? a : b; }                    \
  static inline type ts_max_##n(type a, type b) { return a > b ? a : b; }                    \
  static inline type ts_shl_##n(type a, type b) {                                            \
    return (utype)b < bits ? (type)(utype)((wide)(utype)a << (utype)b) : (type)0;            \
  }                                                                                          \
  static inline type ts_shr_##n(type a, type b) { return (utype)b < bits ? (type)(a >> b) : (type)0; }

#define TS_SIGNED(n, type, utype, wide, bits)                                     \
  TS_INTEGER(n, type, utype, wide, bits)                                          \
  static inline type ts_div_##n(type a, type b) {                                 \
    return b == 0 ? (type)0 : b == -1 ? ts_neg_##n(a) : (type)(a / b);            \
  }                                                                               \
  static inline type ts_floor_div_##n(type a, type b) {                           \
    if (b == 0) return 0;                                                         \
    if (b == -1) return ts_neg_##n(a);                                            \
    return (type)(a / b - (a % b != 0 && (a < 0) != (b < 0)));                    \
  }                                                                               \
  static inline type ts_floor_mod_##n(type a, type b) {                           \
    if (b == 0 || b == -1) return 0;                                              \
    return (type)(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));            \
  }                                                                               \
  static inline type ts_abs_##n(type a) { return a < 0 ? ts_neg_##n(a) : a; }     \
  static inline type ts_sign_##n(type a) { return (type)((a > 0) - (a < 0)); }    \
  static inline type ts_pow_##n(type a, type b) {                                 \
    type result = 1;                                                              \
    utype exponent = (utype)b;                                                    \
    if (b < 0) return (type)(a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0); \
    for (; exponent != 0; exponent = (utype)(exponent >> 1)) {                    \
      if ((exponent & 1) != 0) result = ts_mul_##n(result, a);                    \
      a = ts_mul_##n(a, a);                                                       \
    }                                                                             \
    return result;                                                                \
  }

#define TS_UNSIGNED(n, type, wide, bits)                                                           \
  TS_INTEGER(n, type, type, wide, bits)                                                            \
  static inline type ts_div_##n(type a, type b) { return b == 0 ? (type)0 : (type)(a / b); }       \
  static inline type ts_floor_div_##n(type a, type b) { return ts_div_##n(a, b); }                 \
  static inline type ts_floor_mod_##n(type a, type b) { return b == 0 ? (type)0 : (type)(a % b); } \
  static inline type ts_abs_##n(type a) { return a; }                                              \
  static inline type ts_sign_##n(type a) { return (type)(a != 0); }                                \
  static inline type ts_pow_##n(type a, type b) {                                                  \
    type result = 1;                                                                               \
    for (; b != 0; b = (type)(b >> 1)) {                                                           \
      if ((b & 1) != 0) result = ts_mul_##n(result, a);                                            \
      a = ts_mul_##n(a, a);                                                                        \
    }                                                                                              \
    return result;                                                                                 \
  }

TS_SIGNED(i8, int8_t, uint8_t, uint32_t, 8)
TS_SIGNED(i16, int16_t, uint16_t, uint32_t, 16)
TS_SIGNED(i32, int32_t, uint32_t, uint32_t, 32)
TS_SIGNED(i64, int64_t, uint64_t, uint64_t, 64)
TS_UNSIGNED(u8, uint8_t, uint32_t, 8)
TS_UNSIGNED(u16, uint16_t, uint32_t, 16)
TS_UNSIGNED(u32, uint32_t, uint32_t, 32)
TS_UNSIGNED(u64, uint64_t, uint64_t, 64)

/* --- floats to integers: truncated, saturated, NaN gives 0. The limits are below the least value and above the
   greatest, exact as double. */
#define TS_FROM_FLOAT(n, type, least, greatest, below, above)                       \
  static inline type ts_##n##_from_float(double x) {                                \
    return x != x ? (type)0 : x <= below ? least : x >= above ? greatest : (type)x; \
  }
TS_FROM_FLOAT(i8, int8_t, INT8_MIN, INT8_MAX, -129.0, 128.0)
TS_FROM_FLOAT(i16, int16_t, INT16_MIN, INT16_MAX, -32769.0, 32768.0)
TS_FROM_FLOAT(i32, int32_t, INT32_MIN, INT32_MAX, -2147483649.0, 2147483648.0)
TS_FROM_FLOAT(i64, int64_t, INT64_MIN, INT64_MAX, -9223372036854775808.0, 9223372036854775808.0)
TS_FROM_FLOAT(u8, uint8_t, 0, UINT8_MAX, -1.0, 256.0)
TS_FROM_FLOAT(u16, uint16_t, 0, UINT16_MAX, -1.0, 65536.0)
TS_FROM_FLOAT(u32, uint32_t, 0, UINT32_MAX, -1.0, 4294967296.0)
TS_FROM_FLOAT(u64, uint64_t, 0, UINT64_MAX, -1.0, 18446744073709551616.0)

/* --- floats */
static inline float ts_min_f32(float a, float b) { return a < b || a != a ? a : b; }
static inline float ts_max_f32(float a, float b) { return a > b || a != a ? a : b; }
static inline double ts_min_f64(double a, double b) { return a < b || a != a ? a : b; }
static inline double ts_max_f64(double a, double b) { return a > b || a != a ? a : b; }

/* a * b + c, rounded once where that is an instruction. */
#if defined(FP_FAST_FMAF) || defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__)
#define TS_FAST_FMA 1
static inline float ts_fma_f32(float a, float b, float c) { return fmaf(a, b, c); }
static inline double ts_fma_f64(double a, double b, double c) { return fma(a, b, c); }
#else
#define TS_FAST_FMA 0
static inline float ts_fma_f32(float a, float b, float c) { return a * b + c; }
static inline double ts_fma_f64(double a, double b, double c) { return a * b + c; }
#endif

static inline uint32_t ts_bits_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float ts_f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Storage types: held as float, rounded to nearest even. */
static inline float ts_load_f16(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  const uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
  if (magnitude >= 0x0f800000u) return ts_f32_of_bits(sign | (magnitude + 0x70000000u));
  if (magnitude < 0x00800000u) {
    const float subnormal = (float)(half & 0x3ffu) * 0x1p-24f;
    return sign != 0 ? -subnormal : subnormal;
  }
  return ts_f32_of_bits(sign | (magnitude + 0x38000000u));
}
static inline uint16_t ts_store_f16(float x) {
  const uint32_t bits = ts_bits_f32(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    const float shifted = ts_f32_of_bits(magnitude) + 0.5f;
    return (uint16_t)(sign | (ts_bits_f32(shifted) - 0x3f000000u));
  }
  return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}
static inline float ts_load_bf16(uint16_t half) { return ts_f32_of_bits((uint32_t)half << 16); }
static inline uint16_t ts_store_bf16(float x) {
  const uint32_t bits = ts_bits_f32(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
static inline float ts_round_f16(float x) { return ts_load_f16(ts_store_f16(x)); }
static inline float ts_round_bf16(float x) { return ts_load_bf16(ts_store_bf16(x)); }

/* Functions of f32 whose C counterparts in float may be off by more than one unit are computed in double. */
static inline float ts_abs_f32(float x) { return fabsf(x); }
static inline float ts_sign_f32(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
static inline float ts_sqrt_f32(float x) { return sqrtf(x); }
static inline float ts_exp_f32(float x) { return expf(x); }
static inline float ts_log_f32(float x) { return logf(x); }
static inline float ts_sin_f32(float x) { return sinf(x); }
static inline float ts_cos_f32(float x) { return cosf(x); }
static inline float ts_tan_f32(float x) { return (float)tan((double)x); }
static inline float ts_asin_f32(float x) { return (float)asin((double)x); }
static inline float ts_acos_f32(float x) { return (float)acos((double)x); }
static inline float ts_atan_f32(float x) { return (float)atan((double)x); }
static inline float ts_sinh_f32(float x) { return (float)sinh((double)x); }
static inline float ts_cosh_f32(float x) { return (float)cosh((double)x); }
static inline float ts_tanh_f32(float x) { return tanhf(x); }
static inline float ts_asinh_f32(float x) { return (float)asinh((double)x); }
static inline float ts_acosh_f32(float x) { return (float)acosh((double)x); }
static inline float ts_atanh_f32(float x) { return (float)atanh((double)x); }
static inline float ts_erf_f32(float x) { return erff(x); }
static inline float ts_floor_f32(float x) { return floorf(x); }
static inline float ts_ceil_f32(float x) { return ceilf(x); }
static inline float ts_round_f32(float x) { return rintf(x); }
static inline float ts_trunc_f32(float x) { return truncf(x); }
static inline bool ts_isnan_f32(float x) { return x != x; }
static inline bool ts_isinf_f32(float x) { return fabsf(x) == INFINITY; }
static inline float ts_pow_f32(float x, float y) { return (float)pow((double)x, (double)y); }
static inline float ts_fmod_f32(float x, float y) { return fmodf(x, y); }

static inline double ts_abs_f64(double x) { return fabs(x); }
static inline double ts_sign_f64(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
static inline double ts_sqrt_f64(double x) { return sqrt(x); }
static inline double ts_exp_f64(double x) { return exp(x); }
static inline double ts_log_f64(double x) { return log(x); }
static inline double ts_sin_f64(double x) { return sin(x); }
static inline double ts_cos_f64(double x) { return cos(x); }
static inline double ts_tan_f64(double x) { return tan(x); }
static inline double ts_asin_f64(double x) { return asin(x); }
static inline double ts_acos_f64(double x) { return acos(x); }
static inline double ts_atan_f64(double x) { return atan(x); }
static inline double ts_sinh_f64(double x) { return sinh(x); }
static inline double ts_cosh_f64(double x) { return cosh(x); }
static inline double ts_tanh_f64(double x) { return tanh(x); }
static inline double ts_asinh_f64(double x) { return asinh(x); }
static inline double ts_acosh_f64(double x) { return acosh(x); }
static inline double ts_atanh_f64(double x) { return atanh(x); }
static inline double ts_erf_f64(double x) { return erf(x); }
static inline double ts_floor_f64(double x) { return floor(x); }
static inline double ts_ceil_f64(double x) { return ceil(x); }
static inline double ts_round_f64(double x) { return rint(x); }
static inline double ts_trunc_f64(double x) { return trunc(x); }
static inline bool ts_isnan_f64(double x) { return x != x; }
static inline bool ts_isinf_f64(double x) { return fabs(x) == (double)INFINITY; }
static inline double ts_pow_f64(double x, double y) { return pow(x, y); }
static inline double ts_fmod_f64(double x, double y) { return fmod(x, y); }

/* --- words of small elements: sums of products of four bytes (u8 * i8), of two i16 and of two bf16 elements */
static inline int32_t ts_byte(int32_t word, int shift) {
  return (int32_t)(((uint32_t)word >> shift) & 0xffu);
}
static inline int32_t ts_dot4(int32_t a, int32_t b) {
  int32_t sum = 0;
  int shift;
  for (shift = 0; shift < 32; shift += 8) sum += ts_byte(a, shift) * ((ts_byte(b, shift) ^ 0x80) - 0x80);
  return sum;
}
static inline int32_t ts_dot4narrow(int32_t a, int32_t b) { return ts_dot4(a, b); }
static inline int32_t ts_half(int32_t word, int shift) {
  return (int32_t)((((uint32_t)word >> shift) & 0xffffu) ^ 0x8000u) - 0x8000;
}
static inline int32_t ts_dot2i16(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)(ts_half(a, 0) * ts_half(b, 0)) + (uint32_t)(ts_half(a, 16) * ts_half(b, 16)));
}
static inline float ts_dot2(int32_t a, int32_t b) {
  const float a0 = ts_load_bf16((uint16_t)((uint32_t)a & 0xffffu)),
              a1 = ts_load_bf16((uint16_t)((uint32_t)a >> 16));
  const float b0 = ts_load_bf16((uint16_t)((uint32_t)b & 0xffffu)),
              b1 = ts_load_bf16((uint16_t)((uint32_t)b >> 16));
  return (float)((double)a0 * (double)b0 + (double)a1 * (double)b1);
}
static inline int32_t ts_pair(float a, float b) {
  return (int32_t)((uint32_t)ts_store_bf16(a) | (uint32_t)ts_store_bf16(b) << 16);
}

/* --- vectors of GCC and Clang: TS_VECTOR(f32x16, float, 64) makes ts_f32x16 and ts_f32x16_in, the same in memory, where
   it has no alignment but its elements' */
#if TENSORSMITH_VECTORS
#define TS_VECTOR(name, type, bytes)                          \
  typedef type ts_##name __attribute__((vector_size(bytes))); \
  typedef type ts_##name##_in __attribute__((vector_size(bytes), aligned(sizeof(type)), may_alias));
#define TS_LOAD(name, place) (*(const ts_##name##_in*)(const void*)(place))
#define TS_STORE(name, place, value) (*(ts_##name##_in*)(void*)(place) = (value))
/* Subtracting 0 keeps the sign of a zero. */
#define TS_SPLAT(name, value) ((value) - (ts_##name){0})
#define TS_CONVERT(name, value) __builtin_convertvector((value), ts_##name)
/* mask: all bits of a lane, or none; bits: the vector of integers of the same width */
#define TS_SELECT(name, bits, mask, a, b) \
  ((ts_##name)(((ts_##bits)(a) & (ts_##bits)(mask)) | ((ts_##bits)(b) & ~(ts_##bits)(mask))))

#if defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_fma) && TS_FAST_FMA
#define TS_ELEMENTWISE_FMA 1
#endif
#endif
#if defined(TS_ELEMENTWISE_FMA)
#define ts_fma_f32x4(a, b, c) __builtin_elementwise_fma(a, b, c)
#define ts_fma_f32x8(a, b, c) __builtin_elementwise_fma(a, b, c)
#define ts_fma_f32x16(a, b, c) __builtin_elementwise_fma(a, b, c)
#define ts_fma_f64x2(a, b, c) __builtin_elementwise_fma(a, b, c)
#define ts_fma_f64x4(a, b, c) __builtin_elementwise_fma(a, b, c)
#define ts_fma_f64x8(a, b, c) __builtin_elementwise_fma(a, b, c)
#elif defined(__FMA__)
#define ts_fma_f32x4(a, b, c) __builtin_ia32_vfmaddps(a, b, c)
#define ts_fma_f32x8(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#define ts_fma_f64x2(a, b, c) __builtin_ia32_vfmaddpd(a, b, c)
#define ts_fma_f64x4(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#if defined(__AVX512F__)
#define ts_fma_f32x16(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#define ts_fma_f64x8(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)
#endif
#elif defined(__aarch64__) && !defined(__clang__)
#define ts_fma_f32x4(a, b, c) __builtin_aarch64_fmav4sf(a, b, c)
#define ts_fma_f64x2(a, b, c) __builtin_aarch64_fmav2df(a, b, c)
#endif
#ifndef ts_fma_f32x4
#define ts_fma_f32x4(a, b, c) ((a) * (b) + (c))
#define ts_fma_f64x2(a, b, c) ((a) * (b) + (c))
#endif
#ifndef ts_fma_f32x8
#define ts_fma_f32x8(a, b, c) ((a) * (b) + (c))
#define ts_fma_f64x4(a, b, c) ((a) * (b) + (c))
#endif
#ifndef ts_fma_f32x16
#define ts_fma_f32x16(a, b, c) ((a) * (b) + (c))
#define ts_fma_f64x8(a, b, c) ((a) * (b) + (c))
#endif
#endif
