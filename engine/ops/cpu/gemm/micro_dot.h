// y = x W^T as tiles of dot products: sixteen partial sums per element along k, in blocks of 512.
// The partial sums of a block are joined by one fixed tree and added to the element. Nothing in
// that order depends on the tile, so a row alone has the bits of a row in a batch. Here the partial
// sums are the lanes of a register, which suits few rows that read B in place (micro_nt.h). For
// many rows they are computed one after the other, from packed operands (micro_dot_packed.h).
#pragma once

#include "engine/ops/cpu/kernels/kernels.h"

namespace troupe::engine::ops::cpu::kernels {

// KC of dot products. Part of the order of summation: the same for every kernel; gemm.cpp cuts k at
// multiples of it.
inline constexpr std::int64_t dot_kc = 512;

/// B of a tile: columns have stride `row`, groups of 16 k have stride `step`, and the last group
/// has `tail` values (0: all 16). The columns needed next are at offset `ahead`.
struct DotOperand {
  const float* at;
  std::int64_t row, step;
  int tail;
  std::int64_t ahead = 0;
};

/// Prefetches `fetch` columns, from `ahead` on, into the L2 cache: L1 has no room beside the
/// operands.
template <int fetch, class V, int M, int N>
[[gnu::always_inline]] inline void dot_step(const float* a, const float* b, const DotOperand& from,
                                            V (&sums)[M][N]) {
  V left[M];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) left[i] = V::load(a + 16 * i);
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) {
    const V right = V::load(b + j * from.row);
    if (j < fetch) __builtin_prefetch(b + j * from.row + from.ahead, 0, 2);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) sums[i][j] = V::fma(left[i], right, sums[i][j]);
  }
}

template <class V, int M, int N>
[[gnu::always_inline]] inline void dot_tail(const float* a, const float* b, std::int64_t row,
                                            int tail, V (&sums)[M][N]) {
  const auto mask = V::first(tail);
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) {
    const V right = V::load(b + j * row, mask);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) sums[i][j] = V::fma(V::load(a + 16 * i), right, sums[i][j]);
  }
}

/// C [M, N] = or += the sums over the lanes of a tile.
template <class V, int M, int N>
[[gnu::always_inline]] inline void join_tile(const V (&sums)[M][N], float* c, std::int64_t ldc,
                                             bool add) {
  if constexpr (requires { V::template tile_sums<M>(sums, c, ldc, add); }) {
    V::template tile_sums<M>(sums, c, ldc, add);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) V::template sums<N>(sums[i], c + i * ldc, add);
  }
}

/// C [M, n <= N] = or += the sums over `steps` groups of 16 k.
template <class V, int M, int N, int fetch = 0>
void dot_tile(const float* a, DotOperand b, std::int64_t steps, int n, float* c, std::int64_t ldc,
              bool add) {
  V sums[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sums[i][j] = V::zero();
  }
  const std::int64_t full = b.tail > 0 ? steps - 1 : steps;
  const float* right = b.at;
  for (std::int64_t s = 0; s < full; ++s, a += 16 * M, right += b.step)
    dot_step<fetch>(a, right, b, sums);
  if (b.tail > 0) dot_tail<V, M, N>(a, right, b.row, b.tail, sums);
  if (n == N) return join_tile<V, M, N>(sums, c, ldc, add);
  float joined[M][N];
  join_tile<V, M, N>(sums, joined[0], N, false);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < n; ++j) c[i * ldc + j] = add ? c[i * ldc + j] + joined[i][j] : joined[i][j];
  }
}

/// Calls use(std integral M) with the compile-time number of rows.
template <class V, int M = V::tile_rows, class Use>
[[gnu::always_inline]] inline void with_rows(std::int64_t rows, Use use) {
  if constexpr (M > 0) {
    if (rows == M) {
      use.template operator()<M>();
    } else {
      with_rows<V, M - 1>(rows, use);
    }
  }
}

/// k rounded up to a multiple of 16.
constexpr std::int64_t whole_steps(std::int64_t k) {
  return (k + 15) / 16 * 16;
}

/// Sixteen values of an item, of which `lanes` exist.
template <class V>
[[gnu::always_inline]] inline V values_of(const float* from, std::int64_t ld, std::int64_t lanes) {
  if (ld == 1) return lanes >= 16 ? V::load(from) : V::load(from, V::first(lanes));
  float values[16] = {};
  for (std::int64_t l = 0; l < lanes && l < 16; ++l) values[l] = from[l * ld];
  return V::load(values);
}

/// Packs items as [k / 16][item][16], the last group padded with zeros. Goes item by item, so that
/// memory is read sequentially.
template <class V>
void pack_steps(const PackArgs& p, float* to) {
  for (std::int64_t i = 0; i < p.width; ++i, to += 16) {
    const float* from = p.from + i * (p.items_contiguous ? 1 : p.ld);
    float* target = to;
    for (std::int64_t at = 0; at < p.k; at += 16, target += 16 * p.width) {
      const std::int64_t ld = p.items_contiguous ? p.ld : 1;
      __builtin_prefetch(from + at + p.ld);
      const V x = i < p.count ? values_of<V>(from + at * ld, ld, p.k - at) : V::zero();
      x.store(target);
    }
  }
}

/// Packing of rows of A as a tile.
constexpr PackArgs pack_rows_of_a(const GemmArgs& p, std::int64_t m, std::int64_t rows,
                                  std::int64_t k, std::int64_t depth) {
  return {
      p.a + m * p.rs_a + k * p.cs_a, p.cs_a == 1 ? p.rs_a : p.cs_a, rows, depth, rows, p.cs_a != 1};
}

}  // namespace troupe::engine::ops::cpu::kernels
