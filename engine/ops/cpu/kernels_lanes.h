// Dot products of many rows (the order of kernels_dot.h) from packed operands. Of the sixteen
// running sums of an element one is made after the other: a register has the same one of sixteen
// columns, each a chain of multiply-adds of every sixteenth k, and the tree that joins them is made
// of whole registers. Where lanes are running sums, joining costs as much as 15 of the k at hand;
// here it is 15 additions. Packed, an item has in each block of 512 k those of its first sum, then
// those of its second, ...: [block][sum][step][item].
#pragma once

#include "engine/ops/cpu/kernels_dot.h"

namespace troupe::engine::ops::kernels {

/// Columns of a panel.
inline constexpr std::int64_t lane_columns = 16;

/// Sixteen values of each of few items: transposing registers that are empty but for these would
/// take longer.
template <class V>
[[gnu::always_inline]] inline void pack_few(const float* from, std::int64_t apart,
                                            std::int64_t count, std::int64_t lanes, float* to,
                                            std::int64_t width, std::int64_t sum) {
  for (std::int64_t i = 0; i < width; ++i) {
    float values[16];
    (i < count ? V::load(from + i * apart, V::first(lanes)) : V::zero()).store(values);
    for (std::int64_t l = 0; l < 16; ++l) to[l * sum + i] = values[l];
  }
}

template <class V>
[[gnu::always_inline]] inline void pack_lane_block(const Packing& p, std::int64_t k,
                                                   std::int64_t depth, float* to) {
  const std::int64_t steps = (depth + 15) / 16, sum = steps * p.width,
                     next = p.width < 16 ? p.width : 16;
  const auto room = V::first(p.width), there = V::first(p.count);
  for (std::int64_t s = 0; s < steps; ++s, to += p.width, k += 16) {
    if (p.items_together) {
      for (std::int64_t l = 0; l < 16; ++l)
        (k + l < p.depth ? V::load(p.from + (k + l) * p.apart, there) : V::zero())
            .store(to + l * sum, room);
      continue;
    }
    if (p.width <= 4) {
      pack_few<V>(p.from + k, p.apart, p.count, p.depth - k, to, p.width, sum);
      continue;
    }
    V words[16];
    // Of the same rows, or of the next ones.
    const std::int64_t ahead =
        k + values_ahead < p.depth ? values_ahead : values_ahead - p.depth + next * p.apart;
    for (std::int64_t i = 0; i < 16; ++i) {
      const float* from = p.from + i * p.apart + k;
      __builtin_prefetch(from + ahead);
      words[i] = i < p.count ? V::load(from, V::first(p.depth - k)) : V::zero();
    }
    V::transpose(words);
    for (std::int64_t l = 0; l < 16; ++l) words[l].store(to + l * sum, room);
  }
}

/// Sixteen items at most.
template <class V>
void pack_lanes(const Packing& p, float* to) {
  for (std::int64_t k = 0; k < p.depth; k += k_block)
    pack_lane_block<V>(p, k, p.depth - k < k_block ? p.depth - k : k_block, to + k * p.width);
}

/// One running sum of each element.
template <class V, int M>
[[gnu::always_inline]] inline void lane_chain(const float* a, const float* b, std::int64_t steps,
                                              V (&sums)[M]) {
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) sums[i] = V::zero();
  for (std::int64_t s = 0; s < steps; ++s, a += M, b += lane_columns) {
    const V right = V::load(b);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) sums[i] = V::fma(V::set(a[i]), right, sums[i]);
  }
}
template <class V, int M>
[[gnu::always_inline]] inline void add_to(const V (&more)[M], V (&sums)[M]) {
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) sums[i] = more[i] + sums[i];
}

/// The joined running sums of `count` halves, half h being h + (h + 8): one, or two of neighbours,
/// or two of two, ...
template <class V, int M, int first, int count>
[[gnu::always_inline]] inline void lane_tree(const float* a, const float* b, std::int64_t steps,
                                             V (&sums)[M]) {
  V left[M];
  if constexpr (count == 1) {
    lane_chain<V, M>(a + first * steps * M, b + first * steps * lane_columns, steps, left);
    lane_chain<V, M>(a + (first + 8) * steps * M, b + (first + 8) * steps * lane_columns, steps,
                     sums);
  } else {
    lane_tree<V, M, first, count / 2>(a, b, steps, left);
    lane_tree<V, M, first + count / 2, count / 2>(a, b, steps, sums);
  }
  add_to<V, M>(left, sums);
}

/// C [M, n <= 16] = or += a block's sums, ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) of the halves.
template <class V, int M>
[[gnu::noinline]] void lanes_tile(const float* a, const float* b, std::int64_t steps, float* c,
                                  std::int64_t ldc, std::int64_t n, bool add) {
  V sums[M];
  lane_tree<V, M, 0, 8>(a, b, steps, sums);
  const auto there = V::first(n);
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
    (add ? V::load(c + i * ldc, there) + sums[i] : sums[i]).store(c + i * ldc, there);
}

template <class V, int M = V::lane_rows>
[[gnu::always_inline]] inline void lanes_tile_of(std::int64_t rows, const float* a, const float* b,
                                                 std::int64_t steps, float* c, std::int64_t ldc,
                                                 std::int64_t n, bool add) {
  if constexpr (M > 0) {
    if (rows == M) return lanes_tile<V, M>(a, b, steps, c, ldc, n, add);
    lanes_tile_of<V, M - 1>(rows, a, b, steps, c, ldc, n, add);
  }
}

/// C from packed tiles and panels: some columns at a time, which stay in the second-level cache
/// while all tiles go past them.
template <class V>
void lanes_product(const PanelProduct& p) {
  constexpr std::int64_t group = 8 * lane_columns;
  for (std::int64_t from = 0; from < p.steps; from += k_block) {
    const std::int64_t depth = p.steps - from < k_block ? p.steps - from : k_block;
    for (std::int64_t first = 0; first < p.n; first += group) {
      const std::int64_t end = p.n - first < group ? p.n : first + group;
      for (std::int64_t m = 0; m < p.m; m += p.rows) {
        const std::int64_t height = p.m - m < p.rows ? p.m - m : p.rows;
        const float* rows = p.a + m * p.steps + from * height;
        for (std::int64_t n = first; n < end; n += lane_columns)
          lanes_tile_of<V>(height, rows, p.b + n * p.steps + from * lane_columns, depth / 16,
                           p.c + m * p.ldc + n, p.ldc, end - n, from > 0 || p.accumulate);
      }
    }
  }
}

template <class V>
constexpr Panels lanes() {
  return {.rows = V::lane_rows,
          .columns = lane_columns,
          .step = 1,
          .together = 16,
          .part = k_block,
          .pack = pack_lanes<V>,
          .product = lanes_product<V>};
}

/// A product of many rows that is too small to be shared out.
template <class V>
void dot_packed(const Product& p, float* scratch) {
  constexpr std::int64_t M = V::lane_rows, columns_at_once = 256;
  float* panels = scratch;
  float* rows = scratch + columns_at_once * k_block;
  for (std::int64_t k = 0; k < p.k; k += k_block) {
    const std::int64_t depth = p.k - k < k_block ? p.k - k : k_block, steps = whole_steps(depth);
    for (std::int64_t n = 0; n < p.n; n += columns_at_once) {
      const std::int64_t columns = p.n - n < columns_at_once ? p.n - n : columns_at_once;
      for (std::int64_t j = 0; j < columns; j += lane_columns) {
        const std::int64_t count = columns - j < lane_columns ? columns - j : lane_columns;
        pack_lanes<V>({p.b + (n + j) * p.ldb + k, p.ldb, count, depth, lane_columns, false},
                      panels + j * steps);
      }
      for (std::int64_t m = 0; m < p.m; m += M) {
        const std::int64_t height = p.m - m < M ? p.m - m : M;
        pack_lanes<V>(rows_of_left(p, m, height, k, depth), rows);
        lanes_product<V>({height, columns, steps, height, rows, panels, p.c + m * p.ldc + n, p.ldc,
                          k > 0 || p.accumulate});
      }
    }
  }
}

}  // namespace troupe::engine::ops::kernels
