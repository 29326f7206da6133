#include "engine/generate/simd_softmax.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numbers>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::engine::generate {

namespace {

// Vector extensions of GCC and clang, supported on every processor; single-precision kernels use
// the native width.
struct Narrow {
  using Floats = float __attribute__((vector_size(16)));
};
struct Wide {
  using Floats = float __attribute__((vector_size(32)));
};
struct Widest {
  using Floats = float __attribute__((vector_size(64)));
};
using Doubles = double __attribute__((vector_size(64)));
using Integers = std::int64_t __attribute__((vector_size(64)));

constexpr std::size_t stride = 4;  // independent vectors, to hide latency

template <class Width>
[[gnu::always_inline]] inline float largest(const float* logits) {
  using Floats = typename Width::Floats;
  constexpr std::size_t lanes = sizeof(Floats) / sizeof(float);
  Floats best[stride], next[stride];
  std::memcpy(best, logits, sizeof best);
  for (std::size_t i = lanes * stride; i < row_block; i += lanes * stride) {
    std::memcpy(next, logits + i, sizeof next);
    for (std::size_t j = 0; j < stride; ++j) best[j] = next[j] > best[j] ? next[j] : best[j];
  }
  for (std::size_t j = 1; j < stride; ++j) best[0] = best[j] > best[0] ? best[j] : best[0];
  float all[lanes];
  std::memcpy(all, best, sizeof all);
  return *std::max_element(all, all + lanes);
}

template <class Width>
[[gnu::always_inline]] inline bool all_finite(const float* logits) {
  using Floats = typename Width::Floats;
  constexpr std::size_t lanes = sizeof(Floats) / sizeof(float);
  Floats sums[stride] = {}, next[stride];
  for (std::size_t i = 0; i < row_block; i += lanes * stride) {
    std::memcpy(next, logits + i, sizeof next);
    for (std::size_t j = 0; j < stride; ++j)
      sums[j] += next[j] * 0.0F;  // infinity and NaN times 0 are NaN
  }
  const Floats sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float all = 0;
  for (std::size_t i = 0; i < lanes; ++i) all += sum[i];
  return all == 0;
}

/// 2^x is 2^n e^(f ln 2) with n = round(x) and the series of e up to its ninth power, as |f| <=
/// 1/2.
[[gnu::always_inline]] inline double exp2_weights(const float* logits, double scale, double base,
                                                  double* weights) {
  using Floats = Wide::Floats;
  constexpr std::size_t lanes = 8;
  constexpr double magic =
      0x1.8p52;  // adding it rounds to an integer, which is then in the low bits
  constexpr double series[] = {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                               1.0 / 6,     0.5,        1,         1};
  Doubles sum{};
  for (std::size_t i = 0; i < row_block; i += lanes) {
    Floats z;
    std::memcpy(&z, logits + i, sizeof z);
    Doubles x = __builtin_convertvector(z, Doubles) * scale - base;
    x = x < -1000.0 ? Doubles{} - 1000.0 : x;
    const Doubles rounded = x + magic, f = (x - (rounded - magic)) * std::numbers::ln2;
    Doubles p = Doubles{} + 1.0 / 362880;
#pragma GCC unroll 9
    for (const double term : series) p = p * f + term;
    Integers bits, n;
    std::memcpy(&bits, &p, sizeof bits);
    std::memcpy(&n, &rounded, sizeof n);
    bits += n << 52;
    std::memcpy(&p, &bits, sizeof p);
    std::memcpy(weights + i, &p, sizeof p);
    sum += p;
  }
  double total = 0;
  for (std::size_t i = 0; i < lanes; ++i) total += sum[i];
  return total;
}

template <class Width>
constexpr SimdSoftmax portable_simd_softmax{largest<Width>, all_finite<Width>, exp2_weights,
                                            nullptr};

#if defined(__x86_64__)

struct Avx2 {
  [[gnu::target("avx2,fma")]] static float largest_of(const float* logits) {
    return largest<Wide>(logits);
  }
  [[gnu::target("avx2,fma")]] static bool finite(const float* logits) {
    return all_finite<Wide>(logits);
  }
  [[gnu::target("avx2,fma")]] static double weights(const float* logits, double scale, double base,
                                                    double* to) {
    return exp2_weights(logits, scale, base, to);
  }
};

struct Avx512 {
  [[gnu::target("avx512f,avx512dq")]] static float largest_of(const float* logits) {
    return largest<Widest>(logits);
  }
  [[gnu::target("avx512f,avx512dq")]] static bool finite(const float* logits) {
    return all_finite<Widest>(logits);
  }
  [[gnu::target("avx512f,avx512dq")]] static double weights(const float* logits, double scale,
                                                            double base, double* to) {
    return exp2_weights(logits, scale, base, to);
  }
  /// exp2_weights() of sixteen in f32, with the series up to its seventh power (5e-9). z * scale -
  /// n is rounded once, to 2^-25, and what `scale` lacks of the double is added: f is right to
  /// 3e-8, and 2^f, rounded a few times more, to 1.4e-7 of itself.
  [[gnu::always_inline, gnu::target("avx512f,avx512dq")]] static inline __m512 approximate_exp2(
      const float* logits, __m512 scale, __m512 rest, __m512 base, __m512 minimum) {
    constexpr double ln2 = std::numbers::ln2;
    constexpr double series[] = {ln2 * ln2 * ln2 * ln2 * ln2 * ln2 / 720,
                                 ln2 * ln2 * ln2 * ln2 * ln2 / 120,
                                 ln2 * ln2 * ln2 * ln2 / 24,
                                 ln2 * ln2 * ln2 / 6,
                                 ln2 * ln2 / 2,
                                 ln2,
                                 1};
    const __m512 z = _mm512_max_ps(_mm512_loadu_ps(logits), minimum);
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(z, scale),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_fmadd_ps(z, rest, _mm512_fmsub_ps(z, scale, n));
    __m512 p = _mm512_set1_ps(static_cast<float>(ln2 * ln2 * ln2 * ln2 * ln2 * ln2 * ln2 / 5040));
#pragma GCC unroll 7
    for (const double term : series)
      p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(static_cast<float>(term)));
    return _mm512_scalef_ps(p, _mm512_sub_ps(n, base));
  }
  /// Four at a time are added up in f32 (1.2e-7), the rest in f64.
  [[gnu::target("avx512f,avx512dq")]] static double approximate_sum(const float* logits,
                                                                    double scale, double base) {
    const auto near = static_cast<float>(scale);
    const __m512 first = _mm512_set1_ps(near),
                 rest = _mm512_set1_ps(static_cast<float>(scale - double{near}));
    const __m512 from = _mm512_set1_ps(static_cast<float>(base));
    const __m512 minimum =
        _mm512_set1_ps(static_cast<float>((base - 300) / scale));  // so that f stays small
    __m512d sums = _mm512_setzero_pd();
    for (std::size_t i = 0; i < row_block; i += 64) {
      const __m512 a = approximate_exp2(logits + i, first, rest, from, minimum),
                   b = approximate_exp2(logits + i + 16, first, rest, from, minimum);
      const __m512 c = approximate_exp2(logits + i + 32, first, rest, from, minimum),
                   d = approximate_exp2(logits + i + 48, first, rest, from, minimum);
      const __m512 four = _mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d));
      sums = _mm512_add_pd(sums, _mm512_cvtps_pd(_mm512_castps512_ps256(four)));
      sums = _mm512_add_pd(sums, _mm512_cvtps_pd(_mm512_extractf32x8_ps(four, 1)));
    }
    return _mm512_reduce_add_pd(sums);
  }
};

const SimdSoftmax& best_simd_softmax() {
  static constexpr SimdSoftmax avx2{Avx2::largest_of, Avx2::finite, Avx2::weights, nullptr};
  static constexpr SimdSoftmax avx512{Avx512::largest_of, Avx512::finite, Avx512::weights,
                                      Avx512::approximate_sum};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
             ? avx2
             : portable_simd_softmax<Narrow>;
}

#else

const SimdSoftmax& best_simd_softmax() {
  return portable_simd_softmax<Narrow>;
}

#endif

}  // namespace

const SimdSoftmax& simd_softmax() {
  static const SimdSoftmax& best = best_simd_softmax();
  return best;
}

}  // namespace troupe::engine::generate
