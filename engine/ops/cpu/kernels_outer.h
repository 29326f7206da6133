// C = A B with B's rows along the output: one element of A is broadcast against vectors of B's row,
// and each element of C is one chain of multiply-adds in the order of k. The chain starts from C
// when accumulating, so a gradient summed over two micro-batches has the bits of one summed over
// both at once. Cutting k, m or n for the caches only stores and reloads the chain.
#pragma once

#include "engine/ops/cpu/kernels_dot.h"
#include "engine/ops/cpu/kernels_panels.h"

namespace troupe::engine::ops::kernels {

inline constexpr std::int64_t outer_depth = 256;
inline constexpr std::int64_t outer_columns_block = 512;

/// One step of k: sums += a[i] * right, which get(j) reads from B.
template <class V, int M, int N, class Get>
[[gnu::always_inline]] inline void outer_step(const float* a, V (&sums)[M][N], Get get) {
  V right[N];
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) {
    right[j] = get(j);
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    const V left = V::set(a[i]);
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sums[i][j] = V::fma(left, right[j], sums[i][j]);
  }
}

/// C [M, n <= 16 N] from A packed as [k][M] and rows of B that are `step` apart.
template <class V, int M, int N>
void outer_tile(std::int64_t depth, const float* a, const float* b, std::int64_t step,
                std::int64_t n, float* c, std::int64_t ldc, bool add) {
  decltype(V::first(0)) mask[N];
  V sums[M][N];
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) {
    mask[j] = V::first(n - 16 * j);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
      sums[i][j] = add ? V::load(c + i * ldc + 16 * j, mask[j]) : V::zero();
  }
  if (n >= 16 * N) {
    for (std::int64_t k = 0; k < depth; ++k, a += M, b += step) {
      outer_step<V, M, N>(
          a, sums, [b](int j) __attribute__((always_inline)) { return V::load(b + 16 * j); });
    }
  } else {
    for (std::int64_t k = 0; k < depth; ++k, a += M, b += step) {
      outer_step<V, M, N>(
          a, sums, [ b, &mask ](int j) __attribute__((always_inline)) {
            return V::load(b + 16 * j, mask[j]);
          });
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sums[i][j].store(c + i * ldc + 16 * j, mask[j]);
  }
}

/// A's rows as [k][rows].
template <class V>
void pack_outer_rows(const Product& p, std::int64_t row, std::int64_t rows, std::int64_t k,
                     std::int64_t depth, float* to) {
  const float* from = p.a + row * p.a_row + k * p.a_k;
  if (p.a_row == 1) {
    for (std::int64_t l = 0; l < depth; ++l) {
      for (std::int64_t i = 0; i < rows; ++i) to[l * rows + i] = from[l * p.a_k + i];
    }
  } else {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t l = 0; l < depth; ++l) to[l * rows + i] = from[i * p.a_row + l * p.a_k];
    }
  }
}

template <class V>
void outer_packed(const Product& p, float* scratch) {
  constexpr std::int64_t height = Singles<V>::rows;
  float* panels = scratch;
  float* rows = scratch + outer_columns_block * outer_depth;
  for (std::int64_t k = 0; k < p.k; k += outer_depth) {
    const std::int64_t depth = p.k - k < outer_depth ? p.k - k : outer_depth;
    for (std::int64_t n = 0; n < p.n; n += outer_columns_block) {
      const std::int64_t columns = p.n - n < outer_columns_block ? p.n - n : outer_columns_block;
      for (std::int64_t j = 0; j < columns; j += panel_columns) {
        pack_words<V, Singles<V>>(
            {p.b + k * p.ldb + n + j, p.ldb, columns - j, depth, panel_columns, true},
            panels + j * depth);
      }
      for (std::int64_t m = 0; m < p.m; m += height) {
        const std::int64_t tall = p.m - m < height ? p.m - m : height;
        const float* from = p.a + m * p.a_row + k * p.a_k;
        pack_words<V, Singles<V>>(
            {from, p.a_row == 1 ? p.a_k : p.a_row, tall, depth, tall, p.a_row == 1}, rows);
        panel_product<V, Singles<V>>({tall, columns, depth, tall, rows, panels, p.c + m * p.ldc + n,
                                      p.ldc, k > 0 || p.accumulate});
      }
    }
  }
}

/// One group of packed rows against B where it lies, N vectors wide.
template <class V, int H, int N>
void outer_direct(const Product& p, const float* rows, std::int64_t m, std::int64_t k,
                  std::int64_t depth) {
  for (std::int64_t n = 0; n < p.n; n += 16 * N) {
    outer_tile<V, H, N>(depth, rows, p.b + k * p.ldb + n, p.ldb, p.n - n, p.c + m * p.ldc + n,
                        p.ldc, k > 0 || p.accumulate);
  }
}

template <class V>
void outer_product(const Product& p, float* scratch) {
  if (p.k == 0 && !p.accumulate) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) p.c[i * p.ldc + j] = 0;
    }
  }
  const bool narrow = p.n <= 16;
  if (p.m > 2 * V::tile_rows && !narrow) return outer_packed<V>(p, scratch);
  for (std::int64_t k = 0; k < p.k; k += direct_depth) {
    const std::int64_t depth = p.k - k < direct_depth ? p.k - k : direct_depth;
    for (std::int64_t m = 0; m < p.m; m += V::tile_rows) {
      const std::int64_t height = p.m - m < V::tile_rows ? p.m - m : V::tile_rows;
      pack_outer_rows<V>(p, m, height, k, depth, scratch);
      with_rows<V>(height, [&]<int H>() {
        narrow ? outer_direct<V, H, 1>(p, scratch, m, k, depth)
               : outer_direct<V, H, V::outer_vectors>(p, scratch, m, k, depth);
      });
    }
  }
}

}  // namespace troupe::engine::ops::kernels
