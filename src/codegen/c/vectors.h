/* --- vectors of GCC and Clang: TS_VECTOR(f32x16, float, 64) defines ts_f32x16 and ts_f32x16_in, the
   same type in memory, which is aligned only to its elements' size */
#if TENSORSMITH_VECTORS
#define TS_VECTOR(name, type, bytes)                          \
  typedef type ts_##name __attribute__((vector_size(bytes))); \
  typedef type ts_##name##_in __attribute__((vector_size(bytes), aligned(sizeof(type)), may_alias));
#define TS_LOAD(name, place) (*(const ts_##name##_in*)(const void*)(place))
#define TS_STORE(name, place, value) (*(ts_##name##_in*)(void*)(place) = (value))
/* Subtracting 0 keeps the sign of a zero. */
#define TS_SPLAT(name, value) ((value) - (ts_##name){0})
#define TS_CONVERT(name, value) __builtin_convertvector((value), ts_##name)
/* mask: all bits of a lane are set, or none; bits: the integer vector type of the same width */
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
