// C = A B with rows of B along the output: one element of A is broadcast against vectors of a row
// of B, and each element of C is one chain of FMAs in the order of k. The chain starts from C when
// accumulating, so a gradient summed over two micro-batches has the bits of one summed over both at
// once. Blocking k, m or n for the caches only stores and reloads the chain.
#pragma once

#include "engine/ops/cpu/gemm/micro_dot.h"
#include "engine/ops/cpu/gemm/micro_packed.h"

namespace troupe::engine::ops::cpu::kernels {

inline constexpr std::int64_t nn_kc = 256;
inline constexpr std::int64_t nn_nc = 512;

/// One k: sums += a[i] * right, where get(j) loads `right` from B.
template <class V, int M, int N, class Get>
[[gnu::always_inline]] inline void nn_step(const float* a, V (&sums)[M][N], Get get) {
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

/// C [M, n <= 16 N] from A packed as [k][M] and rows of B with stride `step`.
template <class V, int M, int N>
void nn_tile(std::int64_t depth, const float* a, const float* b, std::int64_t step, std::int64_t n,
             float* c, std::int64_t ldc, bool add) {
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
      nn_step<V, M, N>(
          a, sums, [b](int j) __attribute__((always_inline)) { return V::load(b + 16 * j); });
    }
  } else {
    for (std::int64_t k = 0; k < depth; ++k, a += M, b += step) {
      nn_step<V, M, N>(
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

/// Packs rows of A as [k][rows].
template <class V>
void pack_nn_rows(const GemmArgs& p, std::int64_t row, std::int64_t rows, std::int64_t k,
                  std::int64_t depth, float* to) {
  const float* from = p.a + row * p.rs_a + k * p.cs_a;
  if (p.rs_a == 1) {
    for (std::int64_t l = 0; l < depth; ++l) {
      for (std::int64_t i = 0; i < rows; ++i) to[l * rows + i] = from[l * p.cs_a + i];
    }
  } else {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t l = 0; l < depth; ++l) to[l * rows + i] = from[i * p.rs_a + l * p.cs_a];
    }
  }
}

template <class V>
void gemm_nn_packed(const GemmArgs& p, float* scratch) {
  constexpr std::int64_t height = F32Panel<V>::mr;
  float* panels = scratch;
  float* rows = scratch + nn_nc * nn_kc;
  for (std::int64_t k = 0; k < p.k; k += nn_kc) {
    const std::int64_t depth = p.k - k < nn_kc ? p.k - k : nn_kc;
    for (std::int64_t n = 0; n < p.n; n += nn_nc) {
      const std::int64_t columns = p.n - n < nn_nc ? p.n - n : nn_nc;
      for (std::int64_t j = 0; j < columns; j += panel_nr) {
        pack_elements<V, F32Panel<V>>(
            {p.b + k * p.ldb + n + j, p.ldb, columns - j, depth, panel_nr, true},
            panels + j * depth);
      }
      for (std::int64_t m = 0; m < p.m; m += height) {
        const std::int64_t tall = p.m - m < height ? p.m - m : height;
        const float* from = p.a + m * p.rs_a + k * p.cs_a;
        pack_elements<V, F32Panel<V>>(
            {from, p.rs_a == 1 ? p.cs_a : p.rs_a, tall, depth, tall, p.rs_a == 1}, rows);
        panel_gemm<V, F32Panel<V>>({tall, columns, depth, tall, rows, panels, p.c + m * p.ldc + n,
                                    p.ldc, k > 0 || p.accumulate});
      }
    }
  }
}

/// Multiplies one group of packed rows by B in place, N vectors wide.
template <class V, int H, int N>
void gemm_nn_in_place(const GemmArgs& p, const float* rows, std::int64_t m, std::int64_t k,
                      std::int64_t depth) {
  for (std::int64_t n = 0; n < p.n; n += 16 * N) {
    nn_tile<V, H, N>(depth, rows, p.b + k * p.ldb + n, p.ldb, p.n - n, p.c + m * p.ldc + n, p.ldc,
                     k > 0 || p.accumulate);
  }
}

template <class V>
void gemm_nn(const GemmArgs& p, float* scratch) {
  if (p.k == 0 && !p.accumulate) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) p.c[i * p.ldc + j] = 0;
    }
  }
  const bool narrow = p.n <= 16;
  if (p.m > 2 * V::tile_rows && !narrow) return gemm_nn_packed<V>(p, scratch);
  for (std::int64_t k = 0; k < p.k; k += few_rows_kc) {
    const std::int64_t depth = p.k - k < few_rows_kc ? p.k - k : few_rows_kc;
    for (std::int64_t m = 0; m < p.m; m += V::tile_rows) {
      const std::int64_t height = p.m - m < V::tile_rows ? p.m - m : V::tile_rows;
      pack_nn_rows<V>(p, m, height, k, depth, scratch);
      with_rows<V>(height, [&]<int H>() {
        narrow ? gemm_nn_in_place<V, H, 1>(p, scratch, m, k, depth)
               : gemm_nn_in_place<V, H, V::nn_vectors>(p, scratch, m, k, depth);
      });
    }
  }
}

}  // namespace troupe::engine::ops::cpu::kernels
