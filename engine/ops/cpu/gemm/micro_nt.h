// y = x W^T of few rows (micro_dot.h has the summation order): B is read in place, once. Generation
// streams weights through here.
#pragma once

#include "engine/ops/cpu/gemm/micro_dot_packed.h"

namespace troupe::engine::ops::cpu::kernels {

/// Columns of B that are read at a time, and prefetched.
inline constexpr std::int64_t prefetch_columns = 8;

/// The columns that a tile prefetches for the next group: `count` columns, from `first` on. Tiles
/// divide the columns, because prefetching all at once stalls on memory, and multiplying without
/// prefetching leaves memory idle.
struct PrefetchShare {
  int first, count;
};
constexpr PrefetchShare prefetch_share(std::int64_t tile, std::int64_t tiles, int columns) {
  const std::int64_t parts = tiles < columns ? tiles : columns;
  if (tile >= parts) return {0, 0};
  const int first = static_cast<int>(tile * columns / parts),
            end = static_cast<int>((tile + 1) * columns / parts);
  return {first, end - first};
}

template <class V, int M, int N>
void dot_tile_in_place(const float* a, DotOperand b, std::int64_t steps, int n, int fetched,
                       float* c, std::int64_t ldc, bool add) {
  if (n == N) {
    if (fetched == N) return dot_tile<V, M, N, N>(a, b, steps, n, c, ldc, add);
    if (fetched == 1) return dot_tile<V, M, N, 1>(a, b, steps, n, c, ldc, add);
    if (fetched > 0) return dot_tile<V, M, N, (N + 1) / 2>(a, b, steps, n, c, ldc, add);
    return dot_tile<V, M, N>(a, b, steps, n, c, ldc, add);
  }
  for (int j = 0; j < n; ++j, b.at += b.row) dot_tile<V, M, 1>(a, b, steps, 1, c + j, ldc, add);
}

/// Multiplies one tile of packed rows, from row m on, by columns n .. n + columns - 1.
template <class V, int H, int N>
void gemm_nt_rows(const GemmArgs& p, const float* rows, std::int64_t m, std::int64_t k,
                  std::int64_t depth, std::int64_t n, std::int64_t columns, PrefetchShare fetches) {
  const std::int64_t ahead = (prefetch_columns + fetches.first) * p.ldb;
  for (const std::int64_t end = n + columns; n < end; n += N) {
    const int width = static_cast<int>(end - n < N ? end - n : N);
    for (std::int64_t at = 0; at < depth; at += dot_kc) {
      const std::int64_t part = depth - at < dot_kc ? depth - at : dot_kc;
      const DotOperand b{p.b + n * p.ldb + k + at, p.ldb, 16, static_cast<int>(part % 16), ahead};
      dot_tile_in_place<V, H, N>(rows + at * H, b, (part + 15) / 16, width, fetches.count,
                                 p.c + m * p.ldc + n, p.ldc, k + at > 0 || p.accumulate);
    }
  }
}

/// Multiplies all packed rows by every column. Several tiles take a few columns at a time, which
/// are read from memory once. A single tile of few rows reads more columns at once, so that the
/// hardware prefetcher looks further ahead.
template <class V>
void gemm_nt_in_place(const GemmArgs& p, const float* rows, std::int64_t k, std::int64_t depth) {
  constexpr int maximum = V::few_rows_columns(V::tile_rows);
  const std::int64_t tiles = (p.m + V::tile_rows - 1) / V::tile_rows,
                     group = tiles > 1 ? prefetch_columns : p.n;
  for (std::int64_t n = 0; n < p.n; n += group) {
    const std::int64_t columns = p.n - n < group ? p.n - n : group;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t m = tile * V::tile_rows,
                         height = p.m - m < V::tile_rows ? p.m - m : V::tile_rows;
      const float* from = rows + m * whole_steps(depth);
      with_rows<V>(height, [&]<int H>() {
        constexpr int alone = V::few_rows_columns(H);
        if (tiles == 1)
          return gemm_nt_rows<V, H, alone>(p, from, m, k, depth, n, columns, {0, alone});
        gemm_nt_rows<V, H, maximum>(p, from, m, k, depth, n, columns,
                                    prefetch_share(tile, tiles, maximum));
      });
    }
  }
}

/// Prefetches the first columns of gemm_nt_in_place().
template <class V>
[[gnu::always_inline]] inline void prefetch_first(const GemmArgs& p, std::int64_t k,
                                                  std::int64_t depth) {
  const std::int64_t columns = p.n < prefetch_columns ? p.n : prefetch_columns,
                     maximum = depth < dot_kc ? depth : dot_kc;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t at = 0; at < maximum; at += 16) __builtin_prefetch(p.b + j * p.ldb + k + at);
  }
}

/// Kernels::gemm_nt_few_rows.
template <class V>
void gemm_nt_few_rows(const GemmArgs& p, std::int64_t k, float* rows, bool pack) {
  const std::int64_t depth = p.k - k < few_rows_kc ? p.k - k : few_rows_kc;
  prefetch_first<V>(p, k, depth);
  for (std::int64_t m = 0; m < p.m && pack; m += V::tile_rows) {
    const std::int64_t height = p.m - m < V::tile_rows ? p.m - m : V::tile_rows;
    pack_steps<V>(pack_rows_of_a(p, m, height, k, depth), rows + m * whole_steps(depth));
  }
  gemm_nt_in_place<V>(p, rows, k, depth);
}

template <class V>
void gemm_nt(const GemmArgs& p, float* scratch) {
  if (p.k == 0 && !p.accumulate) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) p.c[i * p.ldc + j] = 0;
    }
  }
  if (p.m > max_few_rows) return gemm_nt_packed<V>(p, scratch);
  for (std::int64_t k = 0; k < p.k; k += few_rows_kc) gemm_nt_few_rows<V>(p, k, scratch, true);
}

}  // namespace troupe::engine::ops::cpu::kernels
