// Weights of whole numbers of 8 bits, for products of bf16 rows. A number up to 127 is exact in
// bf16, so a product is the chain of pairs that kernels_panels.h makes of the same numbers in bf16,
// times the scale of its column. A panel of 32 columns: their scales (f32), and for each step of
// two k and each half of the columns sixteen bytes of the first k and sixteen of the second.
#pragma once

#include "engine/ops/cpu/kernels_panels.h"
#include "engine/ops/cpu/kernels_rows.h"

namespace troupe::engine::ops::kernels {

/// What turns the values of a row to whole numbers and back. What is added to a value before its
/// lowest byte is taken rounds it to nearest, ties to even.
struct WholeRow {
  float inverse, scale;
};
inline constexpr float to_whole = 0x1.8p23F, least_in_int8 = 0x1p-100F;
inline constexpr std::int64_t bytes_ahead =
    8192;  // the processor's own prefetching does not look far enough

template <class V>
[[gnu::always_inline]] inline WholeRow whole_row(const float* x, std::int64_t n) {
  if (!all_finite<V>(x, n)) return {0, __builtin_nanf("")};
  V most = V::zero();
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    const V value = V::load(x + i, mask);
    most = V::max(most, V::max(value, V::zero() - value));
  });
  const float largest = most.largest();
  if (largest < least_in_int8) return {0, 0};
  return {127 / largest, largest / 127};
}

/// `from.count` <= 32 columns to a panel.
template <class V>
void pack_int8(const Packing& from, std::int8_t* to) {
  auto* scales = reinterpret_cast<float*>(to);
  std::int8_t* bytes = to + int8_scales;
  for (std::int64_t half = 0; half < 2; ++half, bytes += 32) {
    WholeRow rows[16] = {};
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t item = 16 * half + i;
      if (item < from.count) rows[i] = whole_row<V>(from.from + item * from.apart, from.depth);
      scales[item] = rows[i].scale;
    }
    for (std::int64_t k = 0; k < from.depth; k += 16) {
      V words[16];
      for (std::int64_t i = 0; i < 16; ++i) {
        const float* values = from.from + (16 * half + i) * from.apart + k;
        const V x =
            16 * half + i < from.count ? V::load(values, V::first(from.depth - k)) : V::zero();
        words[i] = x * V::set(rows[i].inverse) + V::set(to_whole);
      }
      V::transpose(words);
      for (std::int64_t i = 0; i < 16 && k + i < from.depth + from.depth % 2; ++i)
        words[i].store_bytes(bytes + (k + i) / 2 * int8_step + (k + i) % 2 * 16);
    }
  }
}

/// A panel as the products of pairs have it, but for the scales.
template <class V>
void widen_int8(const std::int8_t* panel, std::int64_t steps, float* words) {
  const std::int8_t* bytes = panel + int8_scales;
  for (std::int64_t i = 0; i < 2 * steps; ++i, bytes += 32, words += 16) {
    __builtin_prefetch(bytes + bytes_ahead);
    V::pair(V::of_bytes(bytes), V::of_bytes(bytes + 16)).store(words);
  }
}

template <class V, class E, int M>
[[gnu::noinline]] void int8_tile(const float* a, const std::int8_t* panel, std::int64_t steps,
                                 float* c, std::int64_t ldc, std::int64_t n) {
  V sums[M][2];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) sums[i][0] = sums[i][1] = V::zero();
  const std::int8_t* bytes = panel + int8_scales;
  for (std::int64_t s = 0; s < steps; ++s, a += M, bytes += int8_step) {
    __builtin_prefetch(bytes + bytes_ahead);
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

template <class V, class E, int M = E::rows>
[[gnu::always_inline]] inline void int8_tile_of(std::int64_t rows, const float* a,
                                                const std::int8_t* panel, std::int64_t steps,
                                                float* c, std::int64_t ldc, std::int64_t n) {
  if constexpr (M > 0) {
    if (rows == M) return int8_tile<V, E, M>(a, panel, steps, c, ldc, n);
    int8_tile_of<V, E, M - 1>(rows, a, panel, steps, c, ldc, n);
  }
}

/// C = A B of few tiles of A and of panels of whole numbers, which p.b begins.
template <class V, class E>
void int8_product(const PanelProduct& p) {
  const auto* panel = reinterpret_cast<const std::int8_t*>(p.b);
  for (std::int64_t n = 0; n < p.n; n += panel_columns, panel += int8_panel(p.steps)) {
    for (std::int64_t m = 0; m < p.m; m += p.rows) {
      const std::int64_t height = p.m - m < p.rows ? p.m - m : p.rows;
      int8_tile_of<V, E>(height, p.a + m * p.steps, panel, p.steps, p.c + m * p.ldc + n, p.ldc,
                         p.n - n);
    }
  }
}

template <class V, class E>
constexpr Int8Panels int8_panels() {
  return {.pack = pack_int8<V>, .widen = widen_int8<V>, .product = int8_product<V, E>};
}

}  // namespace troupe::engine::ops::kernels
