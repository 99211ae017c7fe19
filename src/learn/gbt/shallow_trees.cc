#include "learn/gbt/shallow_trees.h"

#include <algorithm>

#include "base/result.h"

#ifdef __x86_64__
#include <immintrin.h>
// GCC 12 warns about deliberately uninitialized registers in its own header.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#endif

namespace tensorsmith::learn {

#ifdef __x86_64__

namespace {

#define TS_AVX512 __attribute__((target("avx512f"), always_inline)) inline

constexpr size_t kShallowLanes = 16;
// Groups of rows processed each time a tree is loaded.
constexpr size_t kGroups = ShallowTrees::kRows / kShallowLanes;

// Transposes a 16 x 16 matrix.
TS_AVX512 void transpose(__m512 (&v)[16]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int k = 0; k < 2; ++k) {
      const __m512d low = _mm512_castps_pd(t[i + k]), high = _mm512_castps_pd(t[i + k + 2]);
      v[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
      v[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
    }
  }
  // Here v[4 q + c] holds the values c, c + 4, c + 8, c + 12 of the rows 4 q to 4 q + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512 low = _mm512_shuffle_f32x4(v[c], v[c + 4], 0x88),
                 low_odd = _mm512_shuffle_f32x4(v[c], v[c + 4], 0xdd);
    const __m512 high = _mm512_shuffle_f32x4(v[c + 8], v[c + 12], 0x88),
                 high_odd = _mm512_shuffle_f32x4(v[c + 8], v[c + 12], 0xdd);
    t[c] = _mm512_shuffle_f32x4(low, high, 0x88);
    t[c + 8] = _mm512_shuffle_f32x4(low, high, 0xdd);
    t[c + 4] = _mm512_shuffle_f32x4(low_odd, high_odd, 0x88);
    t[c + 12] = _mm512_shuffle_f32x4(low_odd, high_odd, 0xdd);
  }
  for (int i = 0; i < 16; ++i) v[i] = t[i];
}

// Sets columns[f * kShallowLanes + r] to value f of row r. Rows beyond `count` repeat the last row.
TS_AVX512 void put_side_by_side(const float* rows, size_t count, size_t width, float* columns) {
  for (size_t f = 0; f < width; f += kShallowLanes) {
    const size_t part = std::min(kShallowLanes, width - f);
    const auto mask = static_cast<__mmask16>((1U << part) - 1);
    __m512 v[kShallowLanes];
    for (size_t r = 0; r < kShallowLanes; ++r)
      v[r] = _mm512_maskz_loadu_ps(mask, rows + std::min(r, count - 1) * width + f);
    transpose(v);
    for (size_t i = 0; i < part; ++i) _mm512_storeu_ps(columns + (f + i) * kShallowLanes, v[i]);
  }
}

// The current nodes of 16 rows in a tree, and the decisions that led there.
struct Places {
  __m512i node;
  __mmask16 right[ShallowTrees::kLevels];  // by level: which rows went right

  TS_AVX512 void step(size_t level, __m512 values, __m512 thresholds) {
    right[level] = _mm512_cmp_ps_mask(values, thresholds, _CMP_GE_OQ);
    node = _mm512_add_epi32(node, node);
    node = _mm512_mask_add_epi32(node, right[level], node, _mm512_set1_epi32(1));
  }
};

// Returns, for each row, the value of the feature that its node on level `Level` tests. Loads the
// values of all features of the level and blends them by the decisions of the first `Level` levels
// in `places`.
template <size_t Level, size_t From = 0>
TS_AVX512 __m512 blended(const int32_t* feature, const float* columns, const Places& places) {
  if constexpr (From == Level) {
    return _mm512_loadu_ps(columns + (*feature) * kShallowLanes);
  } else {
    constexpr size_t kHalf = size_t{1} << (Level - From - 1);
    return _mm512_mask_blend_ps(places.right[From], blended<Level, From + 1>(feature, columns, places),
                                blended<Level, From + 1>(feature + kHalf, columns, places));
  }
}

TS_AVX512 __m512 gathered(__m512i features, const float* columns) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_i32gather_ps(_mm512_add_epi32(_mm512_slli_epi32(features, 4), lane), columns, 4);
}

// Permutations use only the lowest bits of an index. A node of the levels 0 to 3 is thus an index
// into the first register, of level 4 into the second, and of level 5 into the third and fourth.
TS_AVX512 __m512 value_of(const ShallowTrees::CompleteTree& tree, const float* columns) {
  Places at{_mm512_set1_epi32(1), {}};
  const __m512 top = _mm512_load_ps(tree.threshold);
  at.step(0, blended<0>(tree.feature + 1, columns, at), _mm512_permutexvar_ps(at.node, top));
  at.step(1, blended<1>(tree.feature + 2, columns, at), _mm512_permutexvar_ps(at.node, top));
  at.step(2, blended<2>(tree.feature + 4, columns, at), _mm512_permutexvar_ps(at.node, top));
  at.step(3, blended<3>(tree.feature + 8, columns, at), _mm512_permutexvar_ps(at.node, top));
  at.step(4, gathered(_mm512_permutexvar_epi32(at.node, _mm512_load_epi32(tree.feature + 16)), columns),
          _mm512_permutexvar_ps(at.node, _mm512_load_ps(tree.threshold + 16)));
  at.step(5,
          gathered(_mm512_permutex2var_epi32(_mm512_load_epi32(tree.feature + 32), at.node,
                                             _mm512_load_epi32(tree.feature + 48)),
                   columns),
          _mm512_permutex2var_ps(_mm512_load_ps(tree.threshold + 32), at.node,
                                 _mm512_load_ps(tree.threshold + 48)));
  const __m512 left =
      _mm512_permutex2var_ps(_mm512_load_ps(tree.value), at.node, _mm512_load_ps(tree.value + 16));
  const __m512 right =
      _mm512_permutex2var_ps(_mm512_load_ps(tree.value + 32), at.node, _mm512_load_ps(tree.value + 48));
  return _mm512_mask_blend_ps(at.right[0], left, right);
}

__attribute__((target("avx512f"))) void add_values(std::span<const ShallowTrees::CompleteTree> trees,
                                                   const float* columns, size_t width, float* sums) {
  __m512 sum[kGroups];
  for (size_t g = 0; g < kGroups; ++g) sum[g] = _mm512_loadu_ps(sums + g * kShallowLanes);
  for (const auto& tree : trees) {
#pragma GCC unroll 8
    for (size_t g = 0; g < kGroups; ++g)
      sum[g] = _mm512_add_ps(sum[g], value_of(tree, columns + g * kShallowLanes * width));
  }
  for (size_t g = 0; g < kGroups; ++g) _mm512_storeu_ps(sums + g * kShallowLanes, sum[g]);
}

__attribute__((target("avx512f"))) void put_block(const float* rows, size_t count, size_t width,
                                                  float* columns) {
  for (size_t g = 0; g < kGroups; ++g) {
    const size_t first = std::min(g * kShallowLanes, count - 1);
    put_side_by_side(rows + first * width, std::min(count - first, kShallowLanes), width,
                     columns + g * kShallowLanes * width);
  }
}

#undef TS_AVX512

}  // namespace

bool ShallowTrees::runs_here() {
  static const bool kRuns = __builtin_cpu_supports("avx512f") != 0;
  return kRuns;
}

void ShallowTrees::predict(std::span<const float> rows, size_t width, std::span<float> out) const {
  TS_CHECK(runs_here(), "ShallowTrees::predict: this processor has no AVX-512");
  std::vector<float> columns(kRows * width);
  for (size_t block = 0; block < out.size(); block += kRows) {
    const size_t count = std::min(kRows, out.size() - block);
    put_block(rows.data() + block * width, count, width, columns.data());
    float sums[kRows] = {};
    std::copy_n(out.begin() + block, count, sums);
    add_values(trees_, columns.data(), width, sums);
    std::copy_n(sums, count, out.begin() + block);
  }
}

#else

bool ShallowTrees::runs_here() { return false; }
void ShallowTrees::predict(std::span<const float>, size_t, std::span<float>) const {
  TS_CHECK(false, "ShallowTrees::predict: this processor has no AVX-512");
}

#endif

}  // namespace tensorsmith::learn
