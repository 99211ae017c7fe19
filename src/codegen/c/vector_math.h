/* --- functions of f32 vectors. They work in place, because passing a vector as an argument would depend
   on the ABI. The polynomials of exp, log and tanh are those of the Cephes library (S. Moshier); erf's
   were fitted on two intervals. A kernel defines the functions that it uses, for n lanes each:
   TS_VECTOR_exp(16). */
#if TENSORSMITH_VECTORS
#define TS_F(n, value) TS_SPLAT(f32x##n, value)
#define TS_PICK(n, mask, a, b) TS_SELECT(f32x##n, i32x##n, mask, a, b)
#define TS_MAGNITUDE(n, x) ((ts_f32x##n)((ts_i32x##n)(x) & 0x7fffffff))
#define TS_WITH_SIGN(n, x, sign) ((ts_f32x##n)((ts_i32x##n)(x) | ((ts_i32x##n)(sign) & ~0x7fffffff)))

/* e^x = 2^k * e^r, |r| <= ln2 / 2. Beyond the clamps the result is 0 or infinite; NaN propagates. The
   power of two is applied in two steps, because k may exceed the exponent's range where the result does
   not. */
#define TS_VECTOR_exp(n)                                                              \
  static inline void ts_exp_f32x##n(ts_f32x##n* place) {                              \
    ts_f32x##n x = *place, k, r, p;                                                   \
    ts_i32x##n bits, half, rest;                                                      \
    x = TS_PICK(n, x > TS_F(n, 89.0f), TS_F(n, 89.0f), x);                            \
    x = TS_PICK(n, x < TS_F(n, -104.0f), TS_F(n, -104.0f), x);                        \
    k = x * 1.44269504f + 0x1.8p23f;                                                  \
    bits = (ts_i32x##n)k - 0x4b400000;                                                \
    k = k - 0x1.8p23f;                                                                \
    r = ts_fma_f32x##n(k, TS_F(n, -0.693359375f), x);                                 \
    r = ts_fma_f32x##n(k, TS_F(n, 2.12194440e-4f), r);                                \
    p = ts_fma_f32x##n(TS_F(n, 1.9875691500e-4f), r, TS_F(n, 1.3981999507e-3f));      \
    p = ts_fma_f32x##n(p, r, TS_F(n, 8.3334519073e-3f));                              \
    p = ts_fma_f32x##n(p, r, TS_F(n, 4.1665795894e-2f));                              \
    p = ts_fma_f32x##n(p, r, TS_F(n, 1.6666665459e-1f));                              \
    p = ts_fma_f32x##n(p, r, TS_F(n, 5.0000001201e-1f));                              \
    p = ts_fma_f32x##n(p, r * r, r) + 1.0f;                                           \
    half = bits >> 1;                                                                 \
    rest = bits - half;                                                               \
    *place = p * (ts_f32x##n)((half + 127) << 23) * (ts_f32x##n)((rest + 127) << 23); \
  }

/* x = 2^e * m, sqrt(1/2) <= m < sqrt(2). */
#define TS_VECTOR_log(n)                                                            \
  static inline void ts_log_f32x##n(ts_f32x##n* place) {                            \
    const ts_f32x##n x = *place;                                                    \
    const ts_i32x##n tiny = (ts_i32x##n)(x < TS_F(n, 0x1p-126f));                   \
    const ts_f32x##n normal = TS_PICK(n, tiny, x * 0x1p25f, x);                     \
    const ts_i32x##n bits = (ts_i32x##n)normal;                                     \
    ts_i32x##n e = ((bits >> 23) & 255) - 126 - (tiny & 25), low;                   \
    ts_f32x##n m = (ts_f32x##n)((bits & 0x7fffff) | 0x3f000000), z, p, y, exponent; \
    low = (ts_i32x##n)(m < TS_F(n, 0.707106781f));                                  \
    e = e + low;                                                                    \
    m = TS_PICK(n, low, m + m, m) - 1.0f;                                           \
    exponent = TS_CONVERT(f32x##n, e);                                              \
    z = m * m;                                                                      \
    p = ts_fma_f32x##n(TS_F(n, 7.0376836292e-2f), m, TS_F(n, -1.1514610310e-1f));   \
    p = ts_fma_f32x##n(p, m, TS_F(n, 1.1676998740e-1f));                            \
    p = ts_fma_f32x##n(p, m, TS_F(n, -1.2420140846e-1f));                           \
    p = ts_fma_f32x##n(p, m, TS_F(n, 1.4249322787e-1f));                            \
    p = ts_fma_f32x##n(p, m, TS_F(n, -1.6668057665e-1f));                           \
    p = ts_fma_f32x##n(p, m, TS_F(n, 2.0000714765e-1f));                            \
    p = ts_fma_f32x##n(p, m, TS_F(n, -2.4999993993e-1f));                           \
    p = ts_fma_f32x##n(p, m, TS_F(n, 3.3333331174e-1f));                            \
    y = p * m * z;                                                                  \
    y = ts_fma_f32x##n(exponent, TS_F(n, -2.12194440e-4f), y);                      \
    y = ts_fma_f32x##n(z, TS_F(n, -0.5f), y);                                       \
    y = ts_fma_f32x##n(exponent, TS_F(n, 0.693359375f), m + y);                     \
    y = TS_PICK(n, (ts_i32x##n)(x == TS_F(n, INFINITY)), x, y);                     \
    y = TS_PICK(n, (ts_i32x##n)(x == TS_F(n, 0.0f)), TS_F(n, -INFINITY), y);        \
    *place = TS_PICK(n, ~(ts_i32x##n)(x >= TS_F(n, 0.0f)), TS_F(n, NAN), y);        \
  }

/* Uses exp with the same number of lanes. */
#define TS_VECTOR_tanh(n)                                                           \
  static inline void ts_tanh_f32x##n(ts_f32x##n* place) {                           \
    const ts_f32x##n x = *place, a = TS_MAGNITUDE(n, x), z = x * x;                 \
    ts_f32x##n p, e = a + a;                                                        \
    p = ts_fma_f32x##n(TS_F(n, -5.70498872745e-3f), z, TS_F(n, 2.06390887954e-2f)); \
    p = ts_fma_f32x##n(p, z, TS_F(n, -5.37397155531e-2f));                          \
    p = ts_fma_f32x##n(p, z, TS_F(n, 1.33314422036e-1f));                           \
    p = ts_fma_f32x##n(p, z, TS_F(n, -3.33332819422e-1f));                          \
    p = ts_fma_f32x##n(p * z, a, a);                                                \
    ts_exp_f32x##n(&e);                                                             \
    e = 1.0f - 2.0f / (e + 1.0f);                                                   \
    p = TS_PICK(n, (ts_i32x##n)(a < TS_F(n, 0.625f)), p, e);                        \
    *place = TS_WITH_SIGN(n, p, x);                                                 \
  }

/* An odd polynomial near zero; elsewhere 1 - e^polynomial, which rounds to 1 beyond 4. Uses exp, too. */
#define TS_VECTOR_erf(n)                                                                \
  static inline void ts_erf_f32x##n(ts_f32x##n* place) {                                \
    const ts_f32x##n x = *place, a = TS_MAGNITUDE(n, x), s = x * x;                     \
    ts_f32x##n p, q, c = TS_PICK(n, (ts_i32x##n)(a > TS_F(n, 4.0f)), TS_F(n, 4.0f), a); \
    p = ts_fma_f32x##n(TS_F(n, -5.96761703e-4f), s, TS_F(n, 4.99119423e-3f));           \
    p = ts_fma_f32x##n(p, s, TS_F(n, -2.67681349e-2f));                                 \
    p = ts_fma_f32x##n(p, s, TS_F(n, 1.12819925e-1f));                                  \
    p = ts_fma_f32x##n(p, s, TS_F(n, -3.76125336e-1f));                                 \
    p = ts_fma_f32x##n(p, s, TS_F(n, 1.28379166e-1f));                                  \
    p = ts_fma_f32x##n(p, x, x);                                                        \
    q = ts_fma_f32x##n(TS_F(n, -1.72853470e-5f), c, TS_F(n, 3.83197126e-4f));           \
    q = ts_fma_f32x##n(q, c, TS_F(n, -3.88396438e-3f));                                 \
    q = ts_fma_f32x##n(q, c, TS_F(n, 2.42546219e-2f));                                  \
    q = ts_fma_f32x##n(q, c, TS_F(n, -1.06777877e-1f));                                 \
    q = ts_fma_f32x##n(q, c, TS_F(n, -6.34846687e-1f));                                 \
    q = ts_fma_f32x##n(q, c, TS_F(n, -1.28717512e-1f));                                 \
    q = ts_fma_f32x##n(q, c, -c);                                                       \
    ts_exp_f32x##n(&q);                                                                 \
    q = TS_WITH_SIGN(n, 1.0f - q, x);                                                   \
    *place = TS_PICK(n, (ts_i32x##n)(a > TS_F(n, 0.927734375f)), q, p);                 \
  }
#endif
