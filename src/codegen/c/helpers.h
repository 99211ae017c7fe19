/* Functions that generated kernels use in addition to the operators of C, for C99 and similar languages.
   They have the semantics of Tensorsmith's expressions: integers wrap around, a division by zero gives
   0, conversions saturate, minima and maxima propagate NaN. A header for the language precedes this one
   (for C99 helpers_c99.h) and defines TS_INLINE, the types, TS_F32(name) and TS_PRECISE_F32(name),
   ts_wide, TS_DOUBLE, TS_OWN_F16 if it converts f16 itself, ts_fma_f32 and ts_fma_f64, ts_bits_f32 and
   ts_f32_of_bits. */

/* --- integers: name, type, its unsigned type, the type of its arithmetic, bits */
#define TS_INTEGER(n, type, utype, wide, bits)                                           \
  TS_INLINE type ts_add_##n(type a, type b) { return (type)(utype)((wide)a + (wide)b); } \
  TS_INLINE type ts_sub_##n(type a, type b) { return (type)(utype)((wide)a - (wide)b); } \
  TS_INLINE type ts_mul_##n(type a, type b) { return (type)(utype)((wide)a * (wide)b); } \
  TS_INLINE type ts_neg_##n(type a) { return (type)(utype)((wide)0 - (wide)a); }         \
  TS_INLINE type ts_min_##n(type a, type b) { return a < b ? a : b; }                    \
  TS_INLINE type ts_max_##n(type a, type b) { return a > b ? a : b; }                    \
  TS_INLINE type ts_shl_##n(type a, type b) {                                            \
    return (utype)b < bits ? (type)(utype)((wide)(utype)a << (utype)b) : (type)0;        \
  }                                                                                      \
  TS_INLINE type ts_shr_##n(type a, type b) { return (utype)b < bits ? (type)(a >> b) : (type)0; }

#define TS_SIGNED(n, type, utype, wide, bits)                                     \
  TS_INTEGER(n, type, utype, wide, bits)                                          \
  TS_INLINE type ts_div_##n(type a, type b) {                                     \
    return b == 0 ? (type)0 : b == -1 ? ts_neg_##n(a) : (type)(a / b);            \
  }                                                                               \
  TS_INLINE type ts_floor_div_##n(type a, type b) {                               \
    if (b == 0) return 0;                                                         \
    if (b == -1) return ts_neg_##n(a);                                            \
    return (type)(a / b - (a % b != 0 && (a < 0) != (b < 0)));                    \
  }                                                                               \
  TS_INLINE type ts_floor_mod_##n(type a, type b) {                               \
    if (b == 0 || b == -1) return 0;                                              \
    return (type)(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));            \
  }                                                                               \
  TS_INLINE type ts_abs_##n(type a) { return a < 0 ? ts_neg_##n(a) : a; }         \
  TS_INLINE type ts_sign_##n(type a) { return (type)((a > 0) - (a < 0)); }        \
  TS_INLINE type ts_pow_##n(type a, type b) {                                     \
    type result = 1;                                                              \
    utype exponent = (utype)b;                                                    \
    if (b < 0) return (type)(a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0); \
    for (; exponent != 0; exponent = (utype)(exponent >> 1)) {                    \
      if ((exponent & 1) != 0) result = ts_mul_##n(result, a);                    \
      a = ts_mul_##n(a, a);                                                       \
    }                                                                             \
    return result;                                                                \
  }

#define TS_UNSIGNED(n, type, wide, bits)                                                       \
  TS_INTEGER(n, type, type, wide, bits)                                                        \
  TS_INLINE type ts_div_##n(type a, type b) { return b == 0 ? (type)0 : (type)(a / b); }       \
  TS_INLINE type ts_floor_div_##n(type a, type b) { return ts_div_##n(a, b); }                 \
  TS_INLINE type ts_floor_mod_##n(type a, type b) { return b == 0 ? (type)0 : (type)(a % b); } \
  TS_INLINE type ts_abs_##n(type a) { return a; }                                              \
  TS_INLINE type ts_sign_##n(type a) { return (type)(a != 0); }                                \
  TS_INLINE type ts_pow_##n(type a, type b) {                                                  \
    type result = 1;                                                                           \
    for (; b != 0; b = (type)(b >> 1)) {                                                       \
      if ((b & 1) != 0) result = ts_mul_##n(result, a);                                        \
      a = ts_mul_##n(a, a);                                                                    \
    }                                                                                          \
    return result;                                                                             \
  }

TS_SIGNED(i8, int8_t, uint8_t, uint32_t, 8)
TS_SIGNED(i16, int16_t, uint16_t, uint32_t, 16)
TS_SIGNED(i32, int32_t, uint32_t, uint32_t, 32)
TS_SIGNED(i64, int64_t, uint64_t, uint64_t, 64)
TS_UNSIGNED(u8, uint8_t, uint32_t, 8)
TS_UNSIGNED(u16, uint16_t, uint32_t, 16)
TS_UNSIGNED(u32, uint32_t, uint32_t, 32)
TS_UNSIGNED(u64, uint64_t, uint64_t, 64)

/* --- floats to integers: truncated, saturated, NaN gives 0. The limits are just below the least value
   and just above the greatest; they are exact as double. */
#define TS_FROM_FLOAT(n, type, least, greatest, below, above)                       \
  TS_INLINE type ts_##n##_from_float(ts_wide x) {                                   \
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
TS_INLINE float ts_min_f32(float a, float b) { return a < b || a != a ? a : b; }
TS_INLINE float ts_max_f32(float a, float b) { return a > b || a != a ? a : b; }

/* Storage types: held as float, rounded to nearest even. */
#ifndef TS_OWN_F16
TS_INLINE float ts_load_f16(uint16_t stored) {
  const uint32_t sign = (uint32_t)(stored & 0x8000u) << 16;
  const uint32_t magnitude = (uint32_t)(stored & 0x7fffu) << 13;
  if (magnitude >= 0x0f800000u) return ts_f32_of_bits(sign | (magnitude + 0x70000000u));
  if (magnitude < 0x00800000u) {
    const float subnormal = (float)(stored & 0x3ffu) * 0x1p-24f;
    return sign != 0 ? -subnormal : subnormal;
  }
  return ts_f32_of_bits(sign | (magnitude + 0x38000000u));
}
TS_INLINE uint16_t ts_store_f16(float x) {
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
#endif
TS_INLINE float ts_load_bf16(uint16_t stored) { return ts_f32_of_bits((uint32_t)stored << 16); }
TS_INLINE uint16_t ts_store_bf16(float x) {
  const uint32_t bits = ts_bits_f32(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#ifndef TS_OWN_SHORT_QUOTIENT
TS_INLINE float ts_short_quotient(float a, float b) { return a / b; } /* the caller rounds it to 16 bits */
#endif
#ifndef TS_OWN_F16
typedef float ts_f16;
TS_INLINE float ts_round_f16(float x) { return ts_load_f16(ts_store_f16(x)); }
TS_INLINE float ts_add_f16(float a, float b) { return ts_round_f16(a + b); }
TS_INLINE float ts_sub_f16(float a, float b) { return ts_round_f16(a - b); }
TS_INLINE float ts_mul_f16(float a, float b) { return ts_round_f16(a * b); }
#endif
/* Rounds to 10 bits of fraction. */
TS_INLINE float ts_round_tf32_f32(float x) {
  const uint32_t bits = ts_bits_f32(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return ts_f32_of_bits((bits + 0x1000u) & 0xffffe000u);
}
TS_INLINE float ts_round_bf16(float x) { return ts_load_bf16(ts_store_bf16(x)); }

TS_INLINE float ts_abs_f32(float x) { return TS_F32(fabs)(x); }
TS_INLINE float ts_sign_f32(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
TS_INLINE float ts_sqrt_f32(float x) { return TS_F32(sqrt)(x); }
TS_INLINE float ts_exp_f32(float x) { return TS_F32(exp)(x); }
TS_INLINE float ts_log_f32(float x) { return TS_F32(log)(x); }
TS_INLINE float ts_sin_f32(float x) { return TS_F32(sin)(x); }
TS_INLINE float ts_cos_f32(float x) { return TS_F32(cos)(x); }
TS_INLINE float ts_tan_f32(float x) { return TS_PRECISE_F32(tan)(x); }
TS_INLINE float ts_asin_f32(float x) { return TS_PRECISE_F32(asin)(x); }
TS_INLINE float ts_acos_f32(float x) { return TS_PRECISE_F32(acos)(x); }
TS_INLINE float ts_atan_f32(float x) { return TS_PRECISE_F32(atan)(x); }
TS_INLINE float ts_sinh_f32(float x) { return TS_PRECISE_F32(sinh)(x); }
TS_INLINE float ts_cosh_f32(float x) { return TS_PRECISE_F32(cosh)(x); }
TS_INLINE float ts_tanh_f32(float x) { return TS_F32(tanh)(x); }
TS_INLINE float ts_asinh_f32(float x) { return TS_PRECISE_F32(asinh)(x); }
TS_INLINE float ts_acosh_f32(float x) { return TS_PRECISE_F32(acosh)(x); }
TS_INLINE float ts_atanh_f32(float x) { return TS_PRECISE_F32(atanh)(x); }
TS_INLINE float ts_erf_f32(float x) { return TS_F32(erf)(x); }
/* An erf whose result the caller rounds to 16 bits. */
#if TS_SHORT_ERF
#ifndef TS_OWN_LIMITED
/* Clamps x; NaN propagates. */
TS_INLINE float ts_limited(float x, float most) { return x > most ? most : x < -most ? -most : x; }
#endif
/* x P(x^2), fitted on [0, 2.7]; beyond it, erf is 1 in f16. The relative error is at most 3.6e-5, so
   that one in 40 f16 values is off by one unit in the last place, and none by more. It has no branch. */
TS_INLINE float ts_short_erf(float x) {
  const float c = ts_limited(x, 2.7f), t = c * c;
  float p = -8.149480663632858e-07f;
  p = ts_fma_f32(p, t, 2.8565105822053738e-05f);
  p = ts_fma_f32(p, t, -0.0004414406430441886f);
  p = ts_fma_f32(p, t, 0.004035281017422676f);
  p = ts_fma_f32(p, t, -0.02484665997326374f);
  p = ts_fma_f32(p, t, 0.11105064302682877f);
  p = ts_fma_f32(p, t, -0.37549102306365967f);
  p = ts_fma_f32(p, t, 1.1283395290374756f);
  return c * p;
}
#else
TS_INLINE float ts_short_erf(float x) { return ts_erf_f32(x); }
#endif
TS_INLINE float ts_floor_f32(float x) { return TS_F32(floor)(x); }
TS_INLINE float ts_ceil_f32(float x) { return TS_F32(ceil)(x); }
TS_INLINE float ts_round_f32(float x) { return TS_F32(rint)(x); }
TS_INLINE float ts_trunc_f32(float x) { return TS_F32(trunc)(x); }
TS_INLINE bool ts_isnan_f32(float x) { return x != x; }
TS_INLINE bool ts_isinf_f32(float x) { return TS_F32(fabs)(x) == INFINITY; }
TS_INLINE float ts_pow_f32(float x, float y) { return TS_PRECISE_F32(pow)(x, y); }
TS_INLINE float ts_fmod_f32(float x, float y) { return TS_F32(fmod)(x, y); }

#if TS_DOUBLE
TS_INLINE double ts_min_f64(double a, double b) { return a < b || a != a ? a : b; }
TS_INLINE double ts_max_f64(double a, double b) { return a > b || a != a ? a : b; }
TS_INLINE double ts_abs_f64(double x) { return fabs(x); }
TS_INLINE double ts_sign_f64(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
TS_INLINE double ts_sqrt_f64(double x) { return sqrt(x); }
TS_INLINE double ts_exp_f64(double x) { return exp(x); }
TS_INLINE double ts_log_f64(double x) { return log(x); }
TS_INLINE double ts_sin_f64(double x) { return sin(x); }
TS_INLINE double ts_cos_f64(double x) { return cos(x); }
TS_INLINE double ts_tan_f64(double x) { return tan(x); }
TS_INLINE double ts_asin_f64(double x) { return asin(x); }
TS_INLINE double ts_acos_f64(double x) { return acos(x); }
TS_INLINE double ts_atan_f64(double x) { return atan(x); }
TS_INLINE double ts_sinh_f64(double x) { return sinh(x); }
TS_INLINE double ts_cosh_f64(double x) { return cosh(x); }
TS_INLINE double ts_tanh_f64(double x) { return tanh(x); }
TS_INLINE double ts_asinh_f64(double x) { return asinh(x); }
TS_INLINE double ts_acosh_f64(double x) { return acosh(x); }
TS_INLINE double ts_atanh_f64(double x) { return atanh(x); }
TS_INLINE double ts_erf_f64(double x) { return erf(x); }
TS_INLINE double ts_floor_f64(double x) { return floor(x); }
TS_INLINE double ts_ceil_f64(double x) { return ceil(x); }
TS_INLINE double ts_round_f64(double x) { return rint(x); }
TS_INLINE double ts_trunc_f64(double x) { return trunc(x); }
TS_INLINE bool ts_isnan_f64(double x) { return x != x; }
TS_INLINE bool ts_isinf_f64(double x) { return fabs(x) == (double)INFINITY; }
TS_INLINE double ts_pow_f64(double x, double y) { return pow(x, y); }
TS_INLINE double ts_fmod_f64(double x, double y) { return fmod(x, y); }
#endif

/* --- words of small elements: sums of products of four bytes (u8 * i8), of two i16 and of two bf16
   elements */
TS_INLINE int32_t ts_byte(int32_t word, int shift) { return (int32_t)(((uint32_t)word >> shift) & 0xffu); }
TS_INLINE int32_t ts_dot4(int32_t a, int32_t b) {
  int32_t sum = 0;
  int shift;
  for (shift = 0; shift < 32; shift += 8) sum += ts_byte(a, shift) * ((ts_byte(b, shift) ^ 0x80) - 0x80);
  return sum;
}
TS_INLINE int32_t ts_dot4narrow(int32_t a, int32_t b) { return ts_dot4(a, b); }
TS_INLINE int32_t ts_half(int32_t word, int shift) {
  return (int32_t)((((uint32_t)word >> shift) & 0xffffu) ^ 0x8000u) - 0x8000;
}
TS_INLINE int32_t ts_dot2i16(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)(ts_half(a, 0) * ts_half(b, 0)) + (uint32_t)(ts_half(a, 16) * ts_half(b, 16)));
}
TS_INLINE float ts_dot2(int32_t a, int32_t b) {
  const float a0 = ts_load_bf16((uint16_t)((uint32_t)a & 0xffffu)),
              a1 = ts_load_bf16((uint16_t)((uint32_t)a >> 16));
  const float b0 = ts_load_bf16((uint16_t)((uint32_t)b & 0xffffu)),
              b1 = ts_load_bf16((uint16_t)((uint32_t)b >> 16));
  return (float)((ts_wide)a0 * (ts_wide)b0 + (ts_wide)a1 * (ts_wide)b1);
}
TS_INLINE int32_t ts_pair(float a, float b) {
  return (int32_t)((uint32_t)ts_store_bf16(a) | (uint32_t)ts_store_bf16(b) << 16);
}
