// Sixteen f32 lanes in one AVX-512 register.
#pragma once

#include "engine/ops/cpu/simd/x86.h"

namespace troupe::engine::ops::cpu::avx512 {

struct Vec {
  // Tiles that fill the 32 registers (gemm/micro_dot.h, micro_nn.h, micro_nt.h, micro_packed.h).
  static constexpr int tile_rows = 6, nn_vectors = 4, f32_mr = 14, bf16_mr = 10, dot_mr = 12;
  static constexpr int few_rows_columns(int rows) { return rows <= 3 ? 8 : 4; }

  __m512 v;

  using Mask = __mmask16;
  [[gnu::always_inline]] static Mask first(std::int64_t n) {
    return n >= 16  ? static_cast<Mask>(0xffff)
           : n <= 0 ? static_cast<Mask>(0)
                    : static_cast<Mask>((1U << n) - 1U);
  }
  [[gnu::always_inline]] static Vec zero() { return {_mm512_setzero_ps()}; }
  [[gnu::always_inline]] static Vec set(float x) { return {_mm512_set1_ps(x)}; }
  [[gnu::always_inline]] static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  [[gnu::always_inline]] static Vec load(const float* p, Mask m) {
    return {_mm512_maskz_loadu_ps(m, p)};
  }
  [[gnu::always_inline]] void store(float* p) const { _mm512_storeu_ps(p, v); }
  [[gnu::always_inline]] void store(float* p, Mask m) const { _mm512_mask_storeu_ps(p, m, v); }
  /// Non-temporal store to a whole line. Other cores may read it after drain().
  [[gnu::always_inline]] void stream(float* p) const { _mm512_stream_ps(p, v); }
  [[gnu::always_inline]] static void drain() { _mm_sfence(); }
  /// Loads sixteen int8 values; store_bytes() stores the lowest bytes of the lanes.
  [[gnu::always_inline]] static Vec of_bytes(const std::int8_t* p) {
    return {_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  [[gnu::always_inline]] void store_bytes(std::int8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_castps_si512(v)));
  }
  [[gnu::always_inline]] static Vec load(const float* p, AllLanes) { return load(p); }
  [[gnu::always_inline]] void store(float* p, AllLanes) const { store(p); }
  [[gnu::always_inline]] Vec where(AllLanes, Vec) const { return *this; }
  /// Vec outside the mask become `other`.
  [[gnu::always_inline]] Vec where(Mask m, Vec other) const {
    return {_mm512_mask_blend_ps(m, other.v, v)};
  }

  [[gnu::always_inline]] static Vec fma(Vec a, Vec b, Vec c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
  [[gnu::always_inline]] static Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
  /// Returns the second operand where either is NaN.
  [[gnu::always_inline]] static Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
  [[gnu::always_inline]] static Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }

  /// Returns `yes` in lanes where a < b, and `no` elsewhere and where either is NaN.
  [[gnu::always_inline]] static Vec where_less(Vec a, Vec b, Vec yes, Vec no) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
  }

  /// Returns x * 2^n for integral n in [-252, 254], including subnormal results.
  [[gnu::always_inline]] static Vec times_power(Vec x, Vec n) {
    return {_mm512_scalef_ps(x.v, n.v)};
  }
  [[gnu::always_inline]] static Vec round_bf16(Vec x) {
    const __m512i bits = _mm512_castps_si512(x.v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i kept =
        _mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xffff0000U)));
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q),
                                 _mm512_castsi512_ps(kept), x.v)};
  }

  /// Packs two bf16 per lane, from lanes that are rounded already: `first` in the upper half.
  [[gnu::always_inline]] static Vec pair(Vec first, Vec second) {
    const __m512i upper = _mm512_and_si512(_mm512_castps_si512(first.v),
                                           _mm512_set1_epi32(static_cast<int>(0xffff0000U)));
    return {_mm512_castsi512_ps(
        _mm512_or_si512(upper, _mm512_srli_epi32(_mm512_castps_si512(second.v), 16)))};
  }
  [[gnu::always_inline]] static Vec first_of(Vec words) {
    return {_mm512_castsi512_ps(_mm512_and_si512(
        _mm512_castps_si512(words.v), _mm512_set1_epi32(static_cast<int>(0xffff0000U))))};
  }
  [[gnu::always_inline]] static Vec second_of(Vec words) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words.v), 16))};
  }
  /// Moves the values of x and y at even positions to x, and those at odd positions to y.
  [[gnu::always_inline]] static void part_even_odd(Vec& x, Vec& y) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512 left = _mm512_permutex2var_ps(x.v, even, y.v);
    y.v = _mm512_permutex2var_ps(x.v, _mm512_add_epi32(even, _mm512_set1_epi32(1)), y.v);
    x.v = left;
  }
  [[gnu::always_inline]] static void transpose(Vec (&rows)[16]) {
    __m512 pairs[16], fours[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      pairs[i] = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
      pairs[i + 1] = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16;
         i += 4) {  // fours[i + c]: column 4 q + c of rows i .. i + 3, in quarter q
      fours[i] = _mm512_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      fours[i + 1] = _mm512_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
      fours[i + 2] = _mm512_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      fours[i + 3] = _mm512_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const __m512 low = _mm512_shuffle_f32x4(fours[c], fours[4 + c], 0x88),
                   high = _mm512_shuffle_f32x4(fours[8 + c], fours[12 + c], 0x88);
      const __m512 odd_low = _mm512_shuffle_f32x4(fours[c], fours[4 + c], 0xdd);
      const __m512 odd_high = _mm512_shuffle_f32x4(fours[8 + c], fours[12 + c], 0xdd);
      rows[c].v = _mm512_shuffle_f32x4(low, high, 0x88);
      rows[4 + c].v = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
      rows[8 + c].v = _mm512_shuffle_f32x4(low, high, 0xdd);
      rows[12 + c].v = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
    }
  }

  [[gnu::always_inline]] __m256 folded() const {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  }
  /// out[0..N) = or += the sums over the lanes of N vectors, in the order of every x86 kernel.
  template <int N>
  [[gnu::always_inline]] static void sums(const Vec* x, float* out, bool add = false) {
    __m256 halves[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) halves[i] = x[i].folded();
    x86::sums8<N>(halves, out, add);
  }

  /// Returns the folded lanes of x and y, side by side.
  [[gnu::always_inline]] static __m512 folded(__m512 x, __m512 y) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xee));
  }
  /// Returns sums of neighbouring lanes; each quarter has those of x, then those of y.
  [[gnu::always_inline]] static __m512 neighbours(__m512 x, __m512 y) {
    return _mm512_add_ps(_mm512_shuffle_ps(x, y, 0x88), _mm512_shuffle_ps(x, y, 0xdd));
  }
  /// Returns, in quarters, the last two addends of sums() for four columns of rows x and y.
  [[gnu::always_inline]] static __m512 halves(const Vec (&x)[4], const Vec (&y)[4]) {
    return neighbours(neighbours(folded(x[0].v, y[0].v), folded(x[1].v, y[1].v)),
                      neighbours(folded(x[2].v, y[2].v), folded(x[3].v, y[3].v)));
  }
  /// C [M, 4] = or += sums() of each row, four rows at a time.
  template <int M>
  [[gnu::always_inline]] static void tile_sums(const Vec (&x)[M][4], float* c, std::int64_t ldc,
                                               bool add) {
#pragma GCC unroll 4
    for (int row = 0; row < M; row += 4) {
      const auto at = [&](int i) { return row + i < M ? row + i : M - 1; };
      const __m512 low = halves(x[at(0)], x[at(1)]),
                   high = row + 2 < M ? halves(x[at(2)], x[at(3)]) : low;
      const __m512 sums = _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88),
                                        _mm512_shuffle_f32x4(low, high, 0xdd));
      const __m128 quarters[4] = {_mm512_castps512_ps128(sums), _mm512_extractf32x4_ps(sums, 1),
                                  _mm512_extractf32x4_ps(sums, 2), _mm512_extractf32x4_ps(sums, 3)};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        float* to = c + (row + i) * ldc;
        if (row + i < M)
          _mm_storeu_ps(to, add ? _mm_add_ps(_mm_loadu_ps(to), quarters[i]) : quarters[i]);
      }
    }
  }

  /// Accumulates sixteen sums of squares in f64.
  struct Squares {
    __m512d lo = _mm512_setzero_pd(), hi = _mm512_setzero_pd();
    [[gnu::always_inline]] void add(Vec x) {
      const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x.v)),
                    high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1));
      lo = _mm512_fmadd_pd(low, low, lo);
      hi = _mm512_fmadd_pd(high, high, hi);
    }
    [[gnu::always_inline]] void store(double* to) const {
      _mm512_storeu_pd(to, lo);
      _mm512_storeu_pd(to + 8, hi);
    }
  };
  [[gnu::always_inline]] float largest() const {
    return _mm512_reduce_max_ps(v);
  }
};

[[gnu::always_inline]] inline Vec operator+(Vec a, Vec b) {
  return {_mm512_add_ps(a.v, b.v)};
}
[[gnu::always_inline]] inline Vec operator-(Vec a, Vec b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
[[gnu::always_inline]] inline Vec operator*(Vec a, Vec b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
[[gnu::always_inline]] inline Vec operator/(Vec a, Vec b) {
  return {_mm512_div_ps(a.v, b.v)};
}

}  // namespace troupe::engine::ops::cpu::avx512
