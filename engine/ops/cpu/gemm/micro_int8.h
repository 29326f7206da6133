// Int8 weights, for products with bf16 rows. Integers up to 127 are exact in bf16, so a product is
// the chain of bf16 pairs that micro_packed.h computes for the same integers in bf16, times the
// scale of its column. A panel of 32 columns has their scales (f32), then for each k group of two
// and each half of the columns sixteen bytes of the first k and sixteen of the second.
#pragma once

#include "engine/ops/cpu/gemm/micro_packed.h"
#include "engine/ops/cpu/kernels/rows.h"

namespace troupe::engine::ops::cpu::kernels {

/// Factors that convert a row to int8 and back. Adding round_to_int to a value rounds it to
/// nearest, ties to even, and leaves the integer in its lowest byte. A row whose largest value is
/// below min_int8_row becomes zeros.
struct Quantization {
  float inverse, scale;
};
inline constexpr float round_to_int = 0x1.8p23F, min_int8_row = 0x1p-100F;
/// Prefetch distance of panels: the hardware prefetcher does not look far enough ahead.
inline constexpr std::int64_t prefetch_bytes = 8192;

template <class V>
[[gnu::always_inline]] inline Quantization quantization_of(const float* x, std::int64_t n) {
  if (!all_finite<V>(x, n)) return {0, __builtin_nanf("")};
  V maximum = V::zero();
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    const V value = V::load(x + i, mask);
    maximum = V::max(maximum, V::max(value, V::zero() - value));
  });
  const float largest = maximum.largest();
  if (largest < min_int8_row) return {0, 0};
  return {127 / largest, largest / 127};
}

/// Packs from.count <= 32 columns as a panel.
template <class V>
void pack_int8(const PackArgs& from, std::int8_t* to) {
  auto* scales = reinterpret_cast<float*>(to);
  std::int8_t* bytes = to + int8_scales;
  for (std::int64_t half = 0; half < 2; ++half, bytes += 32) {
    Quantization rows[16] = {};
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t item = 16 * half + i;
      if (item < from.count) rows[i] = quantization_of<V>(from.from + item * from.ld, from.k);
      scales[item] = rows[i].scale;
    }
    for (std::int64_t k = 0; k < from.k; k += 16) {
      V vectors[16];
      for (std::int64_t i = 0; i < 16; ++i) {
        const float* values = from.from + (16 * half + i) * from.ld + k;
        const V x = 16 * half + i < from.count ? V::load(values, V::first(from.k - k)) : V::zero();
        vectors[i] = x * V::set(rows[i].inverse) + V::set(round_to_int);
      }
      V::transpose(vectors);
      for (std::int64_t i = 0; i < 16 && k + i < from.k + from.k % 2; ++i)
        vectors[i].store_bytes(bytes + (k + i) / 2 * int8_group + (k + i) % 2 * 16);
    }
  }
}

/// Converts an int8 panel to a bf16 panel, without the scales.
template <class V>
void widen_int8(const std::int8_t* panel, std::int64_t steps, float* elements) {
  const std::int8_t* bytes = panel + int8_scales;
  for (std::int64_t i = 0; i < 2 * steps; ++i, bytes += 32, elements += 16) {
    __builtin_prefetch(bytes + prefetch_bytes);
    V::pair(V::of_bytes(bytes), V::of_bytes(bytes + 16)).store(elements);
  }
}

template <class V, class E, int M>
[[gnu::noinline]] void int8_tile(const float* a, const std::int8_t* panel, std::int64_t steps,
                                 float* c, std::int64_t ldc, std::int64_t n) {
  V sums[M][2];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) sums[i][0] = sums[i][1] = V::zero();
  const std::int8_t* bytes = panel + int8_scales;
  for (std::int64_t s = 0; s < steps; ++s, a += M, bytes += int8_group) {
    __builtin_prefetch(bytes + prefetch_bytes);
    const auto left = E::whole(V::of_bytes(bytes), V::of_bytes(bytes + 16));
    const auto right = E::whole(V::of_bytes(bytes + 32), V::of_bytes(bytes + 48));
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      sums[i][0] = E::add(a[i], left, sums[i][0]);
      sums[i][1] = E::add(a[i], right, sums[i][1]);
    }
  }
  const auto* scales = reinterpret_cast<const float*>(panel);
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    (sums[i][0] * V::load(scales)).store(c + i * ldc, V::first(n));
    (sums[i][1] * V::load(scales + 16)).store(c + i * ldc + 16, V::first(n - 16));
  }
}

template <class V, class E, int M = E::mr>
[[gnu::always_inline]] inline void int8_tile_of(std::int64_t rows, const float* a,
                                                const std::int8_t* panel, std::int64_t steps,
                                                float* c, std::int64_t ldc, std::int64_t n) {
  if constexpr (M > 0) {
    if (rows == M) return int8_tile<V, E, M>(a, panel, steps, c, ldc, n);
    int8_tile_of<V, E, M - 1>(rows, a, panel, steps, c, ldc, n);
  }
}

/// C = A B for few tiles of A, with B in int8 panels from p.b on.
template <class V, class E>
void int8_gemm(const PackedGemm& p) {
  const auto* panel = reinterpret_cast<const std::int8_t*>(p.b);
  for (std::int64_t n = 0; n < p.n; n += panel_nr, panel += int8_panel(p.k_groups)) {
    for (std::int64_t m = 0; m < p.m; m += p.mr) {
      const std::int64_t height = p.m - m < p.mr ? p.m - m : p.mr;
      int8_tile_of<V, E>(height, p.a + m * p.k_groups, panel, p.k_groups, p.c + m * p.ldc + n,
                         p.ldc, p.n - n);
    }
  }
}

template <class V, class E>
constexpr Int8Kernel int8_kernel() {
  return {.pack = pack_int8<V>, .widen = widen_int8<V>, .gemm = int8_gemm<V, E>};
}

}  // namespace troupe::engine::ops::cpu::kernels
