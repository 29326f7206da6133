// Products of few rows (kernels_dot.h has their order of summation): B is read where it lies, once. Generation streams weights through
// here.
#pragma once

#include "engine/ops/cpu/kernels_dot.h"

namespace troupe::engine::ops::kernels {

inline constexpr std::int64_t direct_group = 8;  // columns of B that are read at a time, and fetched ahead

/// Whether a tile has the columns fetched that will be read next. Those of few rows read so many at once that the processor alone keeps up,
/// and fetching costs them more than it brings.
template <class V>
constexpr bool fetches(std::int64_t rows) {
  return rows >= V::tile_rows || V::direct_columns(static_cast<int>(rows)) == V::direct_columns(V::tile_rows);
}

template <class V, int M>
void dot_tile_direct(const float* a, DotOperand b, std::int64_t steps, int n, float* c, std::int64_t ldc, bool add) {
  constexpr int columns = V::direct_columns(M);
  if constexpr (fetches<V>(M)) {
    if (n == columns && b.ahead != 0) return dot_tile<V, M, columns, true>(a, b, steps, n, c, ldc, add);
  }
  if (n == columns) return dot_tile<V, M, columns>(a, b, steps, n, c, ldc, add);
  for (int j = 0; j < n; ++j, b.at += b.row) dot_tile<V, M, 1>(a, b, steps, 1, c + j, ldc, add);
}

/// One tile of packed rows, from row m on, against columns n .. n + columns - 1.
template <class V, int H>
void dot_direct_rows(const Product& p, const float* rows, std::int64_t m, std::int64_t k, std::int64_t depth, std::int64_t n,
                     std::int64_t columns, std::int64_t ahead) {
  constexpr std::int64_t N = V::direct_columns(H);
  for (const std::int64_t end = n + columns; n < end; n += N) {
    const int width = static_cast<int>(end - n < N ? end - n : N);
    for (std::int64_t at = 0; at < depth; at += k_block) {
      const std::int64_t part = depth - at < k_block ? depth - at : k_block;
      const DotOperand b{p.b + n * p.ldb + k + at, p.ldb, 16, static_cast<int>(part % 16), ahead};
      dot_tile_direct<V, H>(rows + at * H, b, (part + 15) / 16, width, p.c + m * p.ldc + n, p.ldc, k + at > 0 || p.accumulate);
    }
  }
}

/// All rows, packed, against every column: where the rows are several tiles, a few columns at a time, which are read from memory once.
template <class V>
void dot_direct(const Product& p, const float* rows, std::int64_t k, std::int64_t depth) {
  const bool several = p.m > V::tile_rows;
  const std::int64_t group = several ? direct_group : p.n;
  for (std::int64_t n = 0; n < p.n; n += group) {
    const std::int64_t columns = p.n - n < group ? p.n - n : group;
    for (std::int64_t m = 0; m < p.m; m += V::tile_rows) {
      const std::int64_t height = p.m - m < V::tile_rows ? p.m - m : V::tile_rows;
      const std::int64_t ahead = several && height < V::tile_rows ? 0 : direct_group * p.ldb;
      with_rows<V>(height, [&]<int H>() { dot_direct_rows<V, H>(p, rows + m * whole_steps(depth), m, k, depth, n, columns, ahead); });
    }
  }
}

/// The columns that dot_direct() begins with: nothing else asks for them before they are needed.
template <class V>
[[gnu::always_inline]] inline void fetch_first(const Product& p, std::int64_t k, std::int64_t depth) {
  const std::int64_t columns = p.n < direct_group ? p.n : direct_group, most = depth < k_block ? depth : k_block;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t at = 0; at < most; at += 16) __builtin_prefetch(p.b + j * p.ldb + k + at);
  }
}

/// Of columns k .. k + depth - 1 of A, at most direct_depth; their rows are left in `rows`, or are there already.
template <class V>
void direct_product(const Product& p, std::int64_t k, float* rows, bool pack) {
  const std::int64_t depth = p.k - k < direct_depth ? p.k - k : direct_depth;
  if (fetches<V>(p.m)) fetch_first<V>(p, k, depth);
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
