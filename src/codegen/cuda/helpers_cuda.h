/* What CUDA C has its own way for; helpers.h stands on it. No header of a toolkit is needed. */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

#define TS_DOUBLE 1
typedef double ts_wide; /* which conversions to integers go through */
#define TS_ALIGNED __attribute__((aligned(16)))
#define TS_INLINE static __device__ __forceinline__
#define TS_F32(name) name##f
#define TS_PRECISE_F32(name) name##f

TS_INLINE float ts_fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TS_INLINE double ts_fma_f64(double a, double b, double c) { return __fma_rn(a, b, c); }
TS_INLINE uint32_t ts_bits_f32(float x) { return __float_as_uint(x); }
TS_INLINE float ts_f32_of_bits(uint32_t bits) { return __uint_as_float(bits); }

/* An instruction each. */
#define TS_OWN_F16 1
TS_INLINE float ts_load_f16(uint16_t stored) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(stored));
  return x;
}
TS_INLINE uint16_t ts_store_f16(float x) {
  uint16_t stored;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(stored) : "f"(x));
  return stored;
}

/* So many elements, which take so many bytes, at once; the places are aligned to that. */
#define TS_COPY(elements, bytes, to, from) TS_COPY_##bytes(to, from)
#define TS_COPY_2(to, from) (*(unsigned short*)(to) = *(const unsigned short*)(from))
#define TS_COPY_4(to, from) (*(unsigned int*)(to) = *(const unsigned int*)(from))
#define TS_COPY_8(to, from) (*(uint2*)(to) = *(const uint2*)(from))
#define TS_COPY_16(to, from) (*(uint4*)(to) = *(const uint4*)(from))
