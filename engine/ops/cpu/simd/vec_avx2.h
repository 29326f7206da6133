// Sixteen f32 lanes in two AVX2 registers: the same arithmetic as one AVX-512 register, bit for
// bit.
#pragma once

#include "engine/ops/cpu/simd/x86.h"

namespace troupe::engine::ops::cpu::avx2 {

struct Vec {
  // Tiles that fit the 16 registers.
  static constexpr int tile_rows = 3, nn_vectors = 2, f32_mr = 3, bf16_mr = 2, dot_mr = 3;
  static constexpr int few_rows_columns(int rows) { return rows == 1 ? 4 : 2; }

  __m256 lo, hi;

  struct Mask {
    __m256i lo, hi;
  };
  [[gnu::always_inline]] static Mask first(std::int64_t n) {
    const __m256i count = _mm256_set1_epi32(n > 16 ? 16 : n < 0 ? 0 : static_cast<int>(n));
    const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {_mm256_cmpgt_epi32(count, low),
            _mm256_cmpgt_epi32(count, _mm256_add_epi32(low, _mm256_set1_epi32(8)))};
  }
  [[gnu::always_inline]] static Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  [[gnu::always_inline]] static Vec set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  [[gnu::always_inline]] static Vec load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  [[gnu::always_inline]] static Vec load(const float* p, Mask m) {
    return {_mm256_maskload_ps(p, m.lo), _mm256_maskload_ps(p + 8, m.hi)};
  }
  [[gnu::always_inline]] void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  /// Non-temporal store to a whole line. Other cores may read it after drain().
  [[gnu::always_inline]] void stream(float* p) const {
    _mm256_stream_ps(p, lo);
    _mm256_stream_ps(p + 8, hi);
  }
  [[gnu::always_inline]] static void drain() { _mm_sfence(); }
  [[gnu::always_inline]] void store(float* p, Mask m) const {
    _mm256_maskstore_ps(p, m.lo, lo);
    _mm256_maskstore_ps(p + 8, m.hi, hi);
  }
  /// Loads sixteen int8 values; store_bytes() stores the lowest bytes of the lanes.
  [[gnu::always_inline]] static Vec of_bytes(const std::int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  [[gnu::always_inline]] void store_bytes(std::int8_t* p) const {
    float words[16];
    store(words);
    for (int i = 0; i < 16; ++i)
      p[i] = static_cast<std::int8_t>(__builtin_bit_cast(std::uint32_t, words[i]));
  }
  [[gnu::always_inline]] static Vec load(const float* p, AllLanes) { return load(p); }
  [[gnu::always_inline]] void store(float* p, AllLanes) const { store(p); }
  [[gnu::always_inline]] Vec where(AllLanes, Vec) const { return *this; }
  /// Vec outside the mask become `other`.
  [[gnu::always_inline]] Vec where(Mask m, Vec other) const {
    return {_mm256_blendv_ps(other.lo, lo, _mm256_castsi256_ps(m.lo)),
            _mm256_blendv_ps(other.hi, hi, _mm256_castsi256_ps(m.hi))};
  }

  [[gnu::always_inline]] static Vec fma(Vec a, Vec b, Vec c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  [[gnu::always_inline]] static Vec sqrt(Vec a) {
    return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)};
  }
  /// Returns the second operand where either is NaN.
  [[gnu::always_inline]] static Vec max(Vec a, Vec b) {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static Vec min(Vec a, Vec b) {
    return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
  }

  /// Returns `yes` in lanes where a < b, and `no` elsewhere and where either is NaN.
  [[gnu::always_inline]] static Vec where_less(Vec a, Vec b, Vec yes, Vec no) {
    return {_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
            _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
  }

  [[gnu::always_inline]] static __m256 times_power8(__m256 x, __m256 n) {
    const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1),
                  rest = _mm256_sub_epi32(whole, half);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256 a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    const __m256 b = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(x, a), b);
  }
  /// Returns x * 2^n for integral n in [-252, 254], including subnormal results.
  [[gnu::always_inline]] static Vec times_power(Vec x, Vec n) {
    return {times_power8(x.lo, n.lo), times_power8(x.hi, n.hi)};
  }
  [[gnu::always_inline]] static Vec round_bf16(Vec x) {
    return {x86::round_bf16(x.lo), x86::round_bf16(x.hi)};
  }

  /// Packs two bf16 per lane, from lanes that are rounded already: `first` in the upper half.
  [[gnu::always_inline]] static Vec pair(Vec first, Vec second) {
    return {x86::pair(first.lo, second.lo), x86::pair(first.hi, second.hi)};
  }
  [[gnu::always_inline]] static Vec first_of(Vec words) {
    return {x86::upper_half(words.lo), x86::upper_half(words.hi)};
  }
  [[gnu::always_inline]] static Vec second_of(Vec words) {
    return {x86::lower_half(words.lo), x86::lower_half(words.hi)};
  }
  /// Moves the values of x and y at even positions to x, and those at odd positions to y.
  [[gnu::always_inline]] static void part_even_odd(Vec& x, Vec& y) {
    const Vec left = {x86::evens(x.lo, x.hi), x86::evens(y.lo, y.hi)};
    y = {x86::odds(x.lo, x.hi), x86::odds(y.lo, y.hi)};
    x = left;
  }
  [[gnu::always_inline]] static void transpose(Vec (&rows)[16]) {
    __m256 quarter[8];
    for (int half = 0; half < 2; ++half) {  // the two quarters on the diagonal
      for (int i = 0; i < 8; ++i) quarter[i] = half == 0 ? rows[i].lo : rows[8 + i].hi;
      x86::transpose8(quarter);
      for (int i = 0; i < 8; ++i) (half == 0 ? rows[i].lo : rows[8 + i].hi) = quarter[i];
    }
    __m256 upper[8];
    for (int i = 0; i < 8; ++i) {
      upper[i] = rows[i].hi;
      quarter[i] = rows[8 + i].lo;
    }
    x86::transpose8(upper);
    x86::transpose8(quarter);
    for (int i = 0; i < 8; ++i) {
      rows[i].hi = quarter[i];
      rows[8 + i].lo = upper[i];
    }
  }

  /// out[0..N) = or += the sums over the lanes of N vectors, in the order of every x86 kernel.
  template <int N>
  [[gnu::always_inline]] static void sums(const Vec* x, float* out, bool add = false) {
    __m256 halves[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) halves[i] = _mm256_add_ps(x[i].lo, x[i].hi);
    x86::sums8<N>(halves, out, add);
  }

  /// Accumulates sixteen sums of squares in f64.
  struct Squares {
    __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                       _mm256_setzero_pd()};
    [[gnu::always_inline]] void add_four(int i, __m128 four) {
      const __m256d x = _mm256_cvtps_pd(four);
      sums[i] = _mm256_fmadd_pd(x, x, sums[i]);
    }
    [[gnu::always_inline]] void add(Vec x) {
      add_four(0, _mm256_castps256_ps128(x.lo));
      add_four(1, _mm256_extractf128_ps(x.lo, 1));
      add_four(2, _mm256_castps256_ps128(x.hi));
      add_four(3, _mm256_extractf128_ps(x.hi, 1));
    }
    [[gnu::always_inline]] void store(double* to) const {
      for (int i = 0; i < 4; ++i) _mm256_storeu_pd(to + 4 * i, sums[i]);
    }
  };
  [[gnu::always_inline]] float largest() const {
    const __m256 eight = _mm256_max_ps(lo, hi);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }
};

[[gnu::always_inline]] inline Vec operator+(Vec a, Vec b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
[[gnu::always_inline]] inline Vec operator-(Vec a, Vec b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
[[gnu::always_inline]] inline Vec operator*(Vec a, Vec b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
[[gnu::always_inline]] inline Vec operator/(Vec a, Vec b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}

}  // namespace troupe::engine::ops::cpu::avx2
