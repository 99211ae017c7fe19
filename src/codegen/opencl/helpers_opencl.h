/* The OpenCL C definitions that helpers.h requires. */
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define TS_DOUBLE 1
typedef double ts_wide; /* intermediate type of conversions to integers */
#else
#define TS_DOUBLE 0
typedef float ts_wide;
#endif

#define TS_SHORT_ERF 1

typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define INT8_MIN CHAR_MIN
#define INT8_MAX CHAR_MAX
#define UINT8_MAX UCHAR_MAX
#define INT16_MIN SHRT_MIN
#define INT16_MAX SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#define UINT64_MAX ULONG_MAX

#define TS_INLINE static inline
#define TS_ALIGNED __attribute__((aligned(16)))
#define TS_F32(name) name
#define TS_PRECISE_F32(name) name

TS_INLINE float ts_fma_f32(float a, float b, float c) { return fma(a, b, c); }
#if TS_DOUBLE
TS_INLINE double ts_fma_f64(double a, double b, double c) { return fma(a, b, c); }
#endif
TS_INLINE uint32_t ts_bits_f32(float x) { return as_uint(x); }
TS_INLINE float ts_f32_of_bits(uint32_t bits) { return as_float(bits); }

/* Copies `elements` elements, which have `bytes` bytes, at once; both addresses are aligned to `bytes`. */
#define TS_COPY(elements, bytes, to, from) vstore##elements(vload##elements(0, (from)), 0, (to))
