// Helpers shared by the AVX2 and AVX-512 vectors, so that both add sixteen lanes in the same order.
// Included only by files compiled with at least AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "engine/ops/cpu/simd/vec.h"

namespace troupe::engine::ops::cpu::x86 {

// Everything is forced inline: a shared copy compiled for one processor must never be called on
// another.

/// Returns ((0+1)+(2+3)) + ((4+5)+(6+7)) of each of four vectors.
[[gnu::always_inline]] static inline __m128 sum4(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}
[[gnu::always_inline]] static inline __m128 sum2(__m256 a, __m256 b) {
  const __m256 pairs = _mm256_hadd_ps(a, b);
  const __m256 sums = _mm256_hadd_ps(pairs, pairs);
  return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

/// out[0..N) = or += the sums over the lanes of N vectors of eight lanes.
template <int N>
[[gnu::always_inline]] static inline void sums8(const __m256* halves, float* out, bool add) {
  if constexpr (N >= 4) {
    const __m128 sums = sum4(halves[0], halves[1], halves[2], halves[3]);
    _mm_storeu_ps(out, add ? _mm_add_ps(_mm_loadu_ps(out), sums) : sums);
    sums8<N - 4>(halves + 4, out + 4, add);
  } else if constexpr (N >= 2) {
    const __m128 sums = sum2(halves[0], halves[1]);
    double pair = 0;  // by copies: out need not be aligned
    if (add) __builtin_memcpy(&pair, out, sizeof(pair));
    pair = _mm_cvtsd_f64(
        _mm_castps_pd(add ? _mm_add_ps(_mm_castpd_ps(_mm_set_sd(pair)), sums) : sums));
    __builtin_memcpy(out, &pair, sizeof(pair));
    sums8<N - 2>(halves + 2, out + 2, add);
  } else if constexpr (N == 1) {
    const float sum = _mm_cvtss_f32(sum2(halves[0], halves[0]));
    *out = add ? *out + sum : sum;
  }
}

/// Rounds eight floats to bf16, ties to even; NaN stays NaN.
[[gnu::always_inline]] static inline __m256 round_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256 kept = _mm256_castsi256_ps(
      _mm256_and_si256(rounded, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
  return _mm256_blendv_ps(kept, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/// Packs two bf16 per lane, from floats that are rounded already: `first` in the upper half.
[[gnu::always_inline]] static inline __m256 upper_half(__m256 words) {
  return _mm256_and_ps(words,
                       _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000U))));
}
[[gnu::always_inline]] static inline __m256 lower_half(__m256 words) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(words), 16));
}
[[gnu::always_inline]] static inline __m256 pair(__m256 first, __m256 second) {
  return _mm256_or_ps(upper_half(first),
                      _mm256_castsi256_ps(_mm256_srli_epi32(_mm256_castps_si256(second), 16)));
}

/// evens() and odds() select every second of sixteen floats; in_order() undoes the lane crossing.
[[gnu::always_inline]] static inline __m256 in_order(__m256 mixed) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
}
[[gnu::always_inline]] static inline __m256 evens(__m256 low, __m256 high) {
  return in_order(_mm256_shuffle_ps(low, high, 0x88));
}
[[gnu::always_inline]] static inline __m256 odds(__m256 low, __m256 high) {
  return in_order(_mm256_shuffle_ps(low, high, 0xdd));
}

[[gnu::always_inline]] static inline void transpose8(__m256 (&rows)[8]) {
  __m256 pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm256_permute2f128_ps(fours[c], fours[4 + c], 0x20);
    rows[4 + c] = _mm256_permute2f128_ps(fours[c], fours[4 + c], 0x31);
  }
}

}  // namespace troupe::engine::ops::cpu::x86
