// Products of few rows (kernels_dot.h has their order of summation): B is read where it lies, once.
// Generation streams weights through here.
#pragma once

#include "engine/ops/cpu/kernels_lanes.h"

namespace troupe::engine::ops::kernels {

inline constexpr std::int64_t direct_group =
    8;  // columns of B that are read at a time, and fetched ahead

/// A tile's share in fetching the columns that will be read next: `count` of those it reads at
/// once, from `first` on. Each of several tiles takes its part, as fetching all of them at once
/// waits for memory and multiplying without fetching leaves memory idle.
struct Share {
  int first, count;
};
constexpr Share share_of(std::int64_t tile, std::int64_t tiles, int columns) {
  const std::int64_t parts = tiles < columns ? tiles : columns;
  if (tile >= parts) return {0, 0};
  const int first = static_cast<int>(tile * columns / parts),
            end = static_cast<int>((tile + 1) * columns / parts);
  return {first, end - first};
}

template <class V, int M, int N>
void dot_tile_direct(const float* a, DotOperand b, std::int64_t steps, int n, int fetched, float* c,
                     std::int64_t ldc, bool add) {
  if (n == N) {
    if (fetched == N) return dot_tile<V, M, N, N>(a, b, steps, n, c, ldc, add);
    if (fetched == 1) return dot_tile<V, M, N, 1>(a, b, steps, n, c, ldc, add);
    if (fetched > 0) return dot_tile<V, M, N, (N + 1) / 2>(a, b, steps, n, c, ldc, add);
    return dot_tile<V, M, N>(a, b, steps, n, c, ldc, add);
  }
  for (int j = 0; j < n; ++j, b.at += b.row) dot_tile<V, M, 1>(a, b, steps, 1, c + j, ldc, add);
}

/// One tile of packed rows, from row m on, against columns n .. n + columns - 1.
template <class V, int H, int N>
void dot_direct_rows(const Product& p, const float* rows, std::int64_t m, std::int64_t k,
                     std::int64_t depth, std::int64_t n, std::int64_t columns, Share fetches) {
  const std::int64_t ahead = (direct_group + fetches.first) * p.ldb;
  for (const std::int64_t end = n + columns; n < end; n += N) {
    const int width = static_cast<int>(end - n < N ? end - n : N);
    for (std::int64_t at = 0; at < depth; at += k_block) {
      const std::int64_t part = depth - at < k_block ? depth - at : k_block;
      const DotOperand b{p.b + n * p.ldb + k + at, p.ldb, 16, static_cast<int>(part % 16), ahead};
      dot_tile_direct<V, H, N>(rows + at * H, b, (part + 15) / 16, width, fetches.count,
                               p.c + m * p.ldc + n, p.ldc, k + at > 0 || p.accumulate);
    }
  }
}

/// All rows, packed, against every column: where the rows are several tiles, a few columns at a
/// time, which are read from memory once. A tile alone reads more columns at once where its rows
/// are few, as the processor then looks further ahead.
template <class V>
void dot_direct(const Product& p, const float* rows, std::int64_t k, std::int64_t depth) {
  constexpr int most = V::direct_columns(V::tile_rows);
  const std::int64_t tiles = (p.m + V::tile_rows - 1) / V::tile_rows,
                     group = tiles > 1 ? direct_group : p.n;
  for (std::int64_t n = 0; n < p.n; n += group) {
    const std::int64_t columns = p.n - n < group ? p.n - n : group;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t m = tile * V::tile_rows,
                         height = p.m - m < V::tile_rows ? p.m - m : V::tile_rows;
      const float* from = rows + m * whole_steps(depth);
      with_rows<V>(height, [&]<int H>() {
        constexpr int alone = V::direct_columns(H);
        if (tiles == 1)
          return dot_direct_rows<V, H, alone>(p, from, m, k, depth, n, columns, {0, alone});
        dot_direct_rows<V, H, most>(p, from, m, k, depth, n, columns, share_of(tile, tiles, most));
      });
    }
  }
}

/// The columns that dot_direct() begins with: nothing else asks for them before they are needed.
template <class V>
[[gnu::always_inline]] inline void fetch_first(const Product& p, std::int64_t k,
                                               std::int64_t depth) {
  const std::int64_t columns = p.n < direct_group ? p.n : direct_group,
                     most = depth < k_block ? depth : k_block;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t at = 0; at < most; at += 16) __builtin_prefetch(p.b + j * p.ldb + k + at);
  }
}

/// Of columns k .. k + depth - 1 of A, at most direct_depth; their rows are left in `rows`, or are
/// there already.
template <class V>
void direct_product(const Product& p, std::int64_t k, float* rows, bool pack) {
  const std::int64_t depth = p.k - k < direct_depth ? p.k - k : direct_depth;
  fetch_first<V>(p, k, depth);
  for (std::int64_t m = 0; m < p.m && pack; m += V::tile_rows) {
    const std::int64_t height = p.m - m < V::tile_rows ? p.m - m : V::tile_rows;
    pack_steps<V>(rows_of_left(p, m, height, k, depth), rows + m * whole_steps(depth));
  }
  dot_direct<V>(p, rows, k, depth);
}

template <class V>
void dot_product(const Product& p, float* scratch) {
  if (p.k == 0 && !p.accumulate) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) p.c[i * p.ldc + j] = 0;
    }
  }
  if (p.m > most_direct_rows) return dot_packed<V>(p, scratch);
  for (std::int64_t k = 0; k < p.k; k += direct_depth) direct_product<V>(p, k, scratch, true);
}

}  // namespace troupe::engine::ops::kernels
