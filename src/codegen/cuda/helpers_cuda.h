/* The CUDA C definitions that helpers.h requires. No header of the CUDA toolkit is needed. */
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
typedef double ts_wide; /* intermediate type of conversions to integers */
#define TS_ALIGNED __attribute__((aligned(16)))
#define TS_INLINE static __device__ __forceinline__
#define TS_F32(name) name##f
#define TS_PRECISE_F32(name) name##f

TS_INLINE float ts_fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TS_INLINE double ts_fma_f64(double a, double b, double c) { return __fma_rn(a, b, c); }
TS_INLINE uint32_t ts_bits_f32(float x) { return __float_as_uint(x); }
TS_INLINE float ts_f32_of_bits(uint32_t bits) { return __uint_as_float(bits); }

/* Values of f16. A sum or product is one instruction, which rounds it like the f32 result rounded to
   f16. */
#define TS_OWN_F16 1
TS_INLINE uint16_t ts_store_f16(float x) {
  uint16_t stored;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(stored) : "f"(x));
  return stored;
}
struct ts_f16 {
  uint16_t stored;
  __device__ __forceinline__ ts_f16() {}
  __device__ __forceinline__ ts_f16(float x) : stored(ts_store_f16(x)) {}
  __device__ __forceinline__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(stored));
    return x;
  }
};
TS_INLINE ts_f16 ts_load_f16(uint16_t stored) {
  ts_f16 x;
  x.stored = stored;
  return x;
}
TS_INLINE uint16_t ts_store_f16(ts_f16 x) { return x.stored; }
TS_INLINE ts_f16 ts_round_f16(float x) { return ts_f16(x); }
TS_INLINE ts_f16 ts_round_f16(ts_f16 x) { return x; }
#define TS_BINARY_F16(name)                                                           \
  TS_INLINE ts_f16 ts_##name##_f16(ts_f16 a, ts_f16 b) {                              \
    ts_f16 x;                                                                         \
    asm(#name ".rn.f16 %0, %1, %2;" : "=h"(x.stored) : "h"(a.stored), "h"(b.stored)); \
    return x;                                                                         \
  }
TS_BINARY_F16(add)
TS_BINARY_F16(sub)
TS_BINARY_F16(mul)

/* Accurate to 2 units in the last place of f32, without the branches of an exact division: the caller
   rounds to 16 bits. */
#define TS_OWN_SHORT_QUOTIENT 1
TS_INLINE float ts_short_quotient(float a, float b) {
  float x;
  asm("div.full.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}

#define TS_SHORT_ERF 1
#if __CUDA_ARCH__ >= 800
#define TS_OWN_LIMITED 1
TS_INLINE float ts_limited(float x, float most) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;\n\tmax.NaN.f32 %0, %0, %3;" : "=&f"(y) : "f"(x), "f"(most), "f"(-most));
  return y;
}
#endif

/* Copies `elements` elements, which have `bytes` bytes, at once; both addresses are aligned to `bytes`. */
#define TS_COPY(elements, bytes, to, from) TS_COPY_##bytes(to, from)
#define TS_COPY_2(to, from) (*(unsigned short*)(to) = *(const unsigned short*)(from))
#define TS_COPY_4(to, from) (*(unsigned int*)(to) = *(const unsigned int*)(from))
#define TS_COPY_8(to, from) (*(uint2*)(to) = *(const uint2*)(from))
#define TS_COPY_16(to, from) (*(uint4*)(to) = *(const uint4*)(from))

/* Two sums in a pair of registers. The even register holds the sum of the odd column: a vector of
   columns begins at an even register, so a multiply-add reads a column and its sum from different banks.
   */
TS_INLINE uint64_t ts_join_sums(float even, float odd) {
  uint64_t sums;
  asm("mov.b64 %0, {%1, %2};" : "=l"(sums) : "f"(odd), "f"(even));
  return sums;
}
TS_INLINE void ts_part_sums(uint64_t sums, float& even, float& odd) {
  asm("mov.b64 {%0, %1}, %2;" : "=f"(odd), "=f"(even) : "l"(sums));
}
TS_INLINE void ts_add_products(uint64_t& sums, float x, float even, float odd) {
  asm("{\n\t.reg .f32 low, high;\n\tmov.b64 {low, high}, %0;\n\tfma.rn.f32 low, %1, %3, low;\n\t"
      "fma.rn.f32 high, %1, %2, high;\n\tmov.b64 %0, {low, high};\n\t}"
      : "+l"(sums)
      : "f"(x), "f"(even), "f"(odd));
}

/* Among four neighbouring lanes: the i-th lane gets the i-th word of each lane, in the lanes' order. */
TS_INLINE void ts_exchange(unsigned& a, unsigned& b, bool second, int apart) {
  const unsigned got = __shfl_xor_sync(0xffffffffu, second ? a : b, apart);
  if (second)
    a = got;
  else
    b = got;
}
TS_INLINE void ts_transpose_quad(unsigned* w, int lane) {
  ts_exchange(w[0], w[1], lane & 1, 1);
  ts_exchange(w[2], w[3], lane & 1, 1);
  ts_exchange(w[0], w[2], lane & 2, 2);
  ts_exchange(w[1], w[3], lane & 2, 2);
}

/* Tensor cores. A lane addresses 16 bytes of shared memory: a line of a matrix of 8 x 8 elements of 16
   bits. */
TS_INLINE unsigned ts_shared(const void* place) { return (unsigned)__cvta_generic_to_shared(place); }
TS_INLINE void ts_load_matrices(unsigned* r, unsigned line) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(line)
               : "memory");
}
TS_INLINE void ts_load_transposed(unsigned* r, unsigned line) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(line)
               : "memory");
}
TS_INLINE void ts_load_element(unsigned& r, unsigned place) {
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(place) : "memory");
}
#if __CUDA_ARCH__ >= 800
/* Rounds four registers of f32 to TF32. */
TS_INLINE void ts_round_fragment(unsigned* r) {
#pragma unroll
  for (int i = 0; i < 4; ++i) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r[i]) : "f"(__uint_as_float(r[i])));
}
#define TS_MMA(name, shape, sum, a_type, b_type, sum_type, constraint)                             \
  TS_INLINE void name(sum& c0, sum& c1, sum& c2, sum& c3, const unsigned* a, const unsigned* b) {  \
    asm volatile("mma.sync.aligned." shape ".row.col." sum_type "." a_type "." b_type "." sum_type \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                \
                 : constraint(c0), constraint(c1), constraint(c2), constraint(c3)                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));              \
  }
TS_MMA(ts_mma_f16, "m16n8k16", float, "f16", "f16", "f32", "+f")
TS_MMA(ts_mma_bf16, "m16n8k16", float, "bf16", "bf16", "f32", "+f")
TS_MMA(ts_mma_tf32, "m16n8k8", float, "tf32", "tf32", "f32", "+f")
TS_MMA(ts_mma_s8_s8, "m16n8k32", int, "s8", "s8", "s32", "+r")
TS_MMA(ts_mma_s8_u8, "m16n8k32", int, "s8", "u8", "s32", "+r")
TS_MMA(ts_mma_u8_s8, "m16n8k32", int, "u8", "s8", "s32", "+r")
TS_MMA(ts_mma_u8_u8, "m16n8k32", int, "u8", "u8", "s32", "+r")

/* Asynchronous copies into shared memory; beyond `count` bytes, zeros are written. */
#define TS_COPY_AHEAD(bytes, to, from, count) TS_COPY_AHEAD_##bytes(to, from, count)
#define TS_COPY_AHEAD_AS(how, bytes, to, from, count)                                                        \
  asm volatile("cp.async." how ".shared.global [%0], [%1], " #bytes ", %2;" ::"r"(ts_shared(to)), "l"(from), \
               "r"(count)                                                                                    \
               : "memory")
#define TS_COPY_AHEAD_4(to, from, count) TS_COPY_AHEAD_AS("ca", 4, to, from, count)
#define TS_COPY_AHEAD_8(to, from, count) TS_COPY_AHEAD_AS("ca", 8, to, from, count)
#define TS_COPY_AHEAD_16(to, from, count) TS_COPY_AHEAD_AS("cg", 16, to, from, count)
TS_INLINE void ts_end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Waits until at most `groups` groups of copies are pending. */
#define TS_WAIT_FOR_COPIES(groups) asm volatile("cp.async.wait_group " #groups ";" ::: "memory")
#elif __CUDA_ARCH__ >= 750
TS_INLINE void ts_mma_half(float& c0, float& c1, float& c2, float& c3, unsigned a0, unsigned a1, unsigned b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(b));
}
TS_INLINE void ts_mma_f16(float& c0, float& c1, float& c2, float& c3, const unsigned* a, const unsigned* b) {
  ts_mma_half(c0, c1, c2, c3, a[0], a[1], b[0]);
  ts_mma_half(c0, c1, c2, c3, a[2], a[3], b[1]);
}
#endif
/* Place of an element in a tile stored in panels (gpu/warpgroup_nest.h): `panel` elements of each line,
   line after line. */
#define TS_PANELS(at, lines, line, panel) \
  ((at) / (line) * (panel) + (at) % (line) / (panel) * ((lines) * (panel)) + (at) % (panel))
/* Place of an element in a swizzled tile: the vectors of a line are permuted by (at / lines) & mask. */
#define TS_SWIZZLE(at, lines, mask, vector) ((at) ^ (int)((unsigned)(at) / (lines) & (mask)) * (vector))
