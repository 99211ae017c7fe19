/* The C99 definitions that helpers.h requires. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* TENSORSMITH_VECTORS=0 selects plain C99 even if the compiler supports vectors. */
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

#define TS_INLINE static inline
#define TS_F32(name) name##f
/* Functions of f32 whose C counterparts in float may be off by more than one unit are computed in
   double. */
#define TS_PRECISE_F32(name) ts_##name##_by_double
#define TS_BY_DOUBLE(name) \
  static inline float ts_##name##_by_double(float x) { return (float)name((double)x); }
TS_BY_DOUBLE(tan)
TS_BY_DOUBLE(asin)
TS_BY_DOUBLE(acos)
TS_BY_DOUBLE(atan)
TS_BY_DOUBLE(sinh)
TS_BY_DOUBLE(cosh)
TS_BY_DOUBLE(asinh)
TS_BY_DOUBLE(acosh)
TS_BY_DOUBLE(atanh)
static inline float ts_pow_by_double(float x, float y) { return (float)pow((double)x, (double)y); }
#define TS_DOUBLE 1
typedef double ts_wide; /* intermediate type of conversions to integers */

/* a * b + c, with a single rounding if the machine has an instruction for it. */
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
