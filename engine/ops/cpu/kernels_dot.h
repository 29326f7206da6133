// y = x W^T as tiles of dot products: sixteen running sums an element along k, in blocks of 512, each block's sum joined by one
// fixed tree and added to the element. Nothing in that order depends on the tile, so a row alone has the bits of a row in a batch.
// A's rows are copied tile by tile. For few rows B is read where it lies (kernels_direct.h). For many it is copied block by block, which
// keeps it in the second-level cache whatever its stride.
#pragma once

#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops::kernels {

inline constexpr std::int64_t k_block = 512;  // part of the order of summation: the same for everyone
inline constexpr std::int64_t dot_columns_block = 256;

/// Where a tile's B comes from: `row` apart for columns, `step` apart for each 16 of k; the last step has `tail` lanes (0: all 16). What
/// stands `ahead` is wanted soon (0: nothing is).
struct DotOperand {
  const float* at;
  std::int64_t row, step;
  int tail;
  std::int64_t ahead = 0;
};

template <bool fetch, class V, int M, int N>
[[gnu::always_inline]] inline void dot_step(const float* a, const float* b, const DotOperand& from, V (&sums)[M][N]) {
  V left[M];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) left[i] = V::load(a + 16 * i);
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) {
    const V right = V::load(b + j * from.row);
    if constexpr (fetch) __builtin_prefetch(b + j * from.row + from.ahead);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) sums[i][j] = V::fma(left[i], right, sums[i][j]);
  }
}

template <class V, int M, int N>
[[gnu::always_inline]] inline void dot_tail(const float* a, const float* b, std::int64_t row, int tail, V (&sums)[M][N]) {
  const auto mask = V::first(tail);
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) {
    const V right = V::load(b + j * row, mask);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) sums[i][j] = V::fma(V::load(a + 16 * i), right, sums[i][j]);
  }
}

/// C [M, n <= N] = or += the sums over `steps` steps of 16.
template <class V, int M, int N, bool fetch = false>
void dot_tile(const float* a, DotOperand b, std::int64_t steps, int n, float* c, std::int64_t ldc, bool add) {
  V sums[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sums[i][j] = V::zero();
  }
  const std::int64_t full = b.tail > 0 ? steps - 1 : steps;
  const float* right = b.at;
  for (std::int64_t s = 0; s < full; ++s, a += 16 * M, right += b.step) dot_step<fetch>(a, right, b, sums);
  if (b.tail > 0) dot_tail<V, M, N>(a, right, b.row, b.tail, sums);
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    float* result = c + i * ldc;
    if (n == N) {
      V::template sums<N>(sums[i], result, add);
    } else {
      float joined[N];
      V::template sums<N>(sums[i], joined);
      for (int j = 0; j < n; ++j) result[j] = add ? result[j] + joined[j] : joined[j];
    }
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

/// k in whole steps of 16.
constexpr std::int64_t whole_steps(std::int64_t k) { return (k + 15) / 16 * 16; }

/// A's rows as [step][row][16], the last step filled up with zeros.
template <class V>
void pack_dot_rows(const Product& p, std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth, float* to) {
  for (std::int64_t at = 0; at < depth; at += 16) {
    const std::int64_t lanes = depth - at < 16 ? depth - at : 16;
    for (std::int64_t i = 0; i < rows; ++i, to += 16) {
      const float* from = p.a + (row + i) * p.a_row + (k + at) * p.a_k;
      V x;
      if (p.a_k == 1) {
        x = lanes == 16 ? V::load(from) : V::load(from, V::first(lanes));
      } else {
        float values[16] = {};
        for (std::int64_t l = 0; l < lanes; ++l) values[l] = from[l * p.a_k];
        x = V::load(values);
      }
      x.store(to);
    }
  }
}

/// B's rows [column, column + columns) as panels of [step][N][16]; missing columns are zeros.
template <class V>
void pack_dot_columns(const Product& p, std::int64_t column, std::int64_t columns, std::int64_t k, std::int64_t depth, float* to) {
  constexpr std::int64_t N = V::dot_columns;
  const std::int64_t steps = (depth + 15) / 16;
  for (std::int64_t j = 0; j < (columns + N - 1) / N * N; ++j) {
    float* target = to + (j / N) * steps * N * 16 + (j % N) * 16;
    const float* from = p.b + (column + j) * p.ldb + k;
    for (std::int64_t at = 0; at < depth; at += 16, target += N * 16) {
      V x = V::zero();
      if (j < columns) x = depth - at >= 16 ? V::load(from + at) : V::load(from + at, V::first(depth - at));
      x.store(target);
    }
  }
}

template <class V>
void dot_packed(const Product& p, float* scratch) {
  constexpr std::int64_t M = V::tile_rows, N = V::dot_columns;
  float* panels = scratch;
  float* rows = scratch + dot_columns_block * k_block;
  for (std::int64_t k = 0; k < p.k; k += k_block) {
    const std::int64_t depth = p.k - k < k_block ? p.k - k : k_block, steps = (depth + 15) / 16;
    const bool add = k > 0 || p.accumulate;
    for (std::int64_t n = 0; n < p.n; n += dot_columns_block) {
      const std::int64_t columns = p.n - n < dot_columns_block ? p.n - n : dot_columns_block;
      pack_dot_columns<V>(p, n, columns, k, depth, panels);
      for (std::int64_t m = 0; m < p.m; m += M) {
        const std::int64_t height = p.m - m < M ? p.m - m : M;
        pack_dot_rows<V>(p, m, height, k, depth, rows);
        with_rows<V>(height, [&]<int H>() {
          for (std::int64_t j = 0; j < columns; j += N) {
            const int width = static_cast<int>(columns - j < N ? columns - j : N);
            const DotOperand b{panels + j * steps * 16, 16, N * 16, 0};
            dot_tile<V, H, static_cast<int>(N)>(rows, b, steps, width, p.c + m * p.ldc + n + j, p.ldc, add);
          }
        });
      }
    }
  }
}

}  // namespace troupe::engine::ops::kernels
