// Dot products of many rows (the summation order of micro_dot.h) from packed operands. The sixteen
// partial sums of an element are computed one after the other: a register holds the same partial
// sum of sixteen columns, each a chain of FMAs over every sixteenth k, and the tree that joins them
// works on whole registers. With partial sums in lanes, the join costs as much as 15 of the k at
// hand; here it is 15 additions. A packed item has, in each block of 512 k, the values of its first
// partial sum, then those of its second, ...: [block][partial sum][step][item].
#pragma once

#include "engine/ops/cpu/gemm/micro_dot.h"

namespace troupe::engine::ops::cpu::kernels {

/// NR: columns of a panel.
inline constexpr std::int64_t dot_nr = 16;

/// Packs sixteen values of each of a few items: transposing registers that are mostly empty would
/// take longer.
template <class V>
[[gnu::always_inline]] inline void pack_few(const float* from, std::int64_t ld, std::int64_t count,
                                            std::int64_t lanes, float* to, std::int64_t width,
                                            std::int64_t sum) {
  for (std::int64_t i = 0; i < width; ++i) {
    float values[16];
    (i < count ? V::load(from + i * ld, V::first(lanes)) : V::zero()).store(values);
    for (std::int64_t l = 0; l < 16; ++l) to[l * sum + i] = values[l];
  }
}

template <class V>
[[gnu::always_inline]] inline void pack_dot_block(const PackArgs& p, std::int64_t k,
                                                  std::int64_t depth, float* to) {
  const std::int64_t steps = (depth + 15) / 16, sum = steps * p.width,
                     next = p.width < 16 ? p.width : 16;
  const auto room = V::first(p.width), there = V::first(p.count);
  for (std::int64_t s = 0; s < steps; ++s, to += p.width, k += 16) {
    if (p.items_contiguous) {
      for (std::int64_t l = 0; l < 16; ++l)
        (k + l < p.k ? V::load(p.from + (k + l) * p.ld, there) : V::zero())
            .store(to + l * sum, room);
      continue;
    }
    if (p.width <= 4) {
      pack_few<V>(p.from + k, p.ld, p.count, p.k - k, to, p.width, sum);
      continue;
    }
    V vectors[16];
    // Values of the same rows, or of the next ones.
    const std::int64_t ahead =
        k + prefetch_values < p.k ? prefetch_values : prefetch_values - p.k + next * p.ld;
    for (std::int64_t i = 0; i < 16; ++i) {
      const float* from = p.from + i * p.ld + k;
      __builtin_prefetch(from + ahead);
      vectors[i] = i < p.count ? V::load(from, V::first(p.k - k)) : V::zero();
    }
    V::transpose(vectors);
    for (std::int64_t l = 0; l < 16; ++l) vectors[l].store(to + l * sum, room);
  }
}

/// Packs at most sixteen items.
template <class V>
void pack_dot_panel(const PackArgs& p, float* to) {
  for (std::int64_t k = 0; k < p.k; k += dot_kc)
    pack_dot_block<V>(p, k, p.k - k < dot_kc ? p.k - k : dot_kc, to + k * p.width);
}

/// Computes one partial sum of each element.
template <class V, int M>
[[gnu::always_inline]] inline void partial_sum(const float* a, const float* b, std::int64_t steps,
                                               V (&sums)[M]) {
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) sums[i] = V::zero();
  for (std::int64_t s = 0; s < steps; ++s, a += M, b += dot_nr) {
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

/// Joins the partial sums of `count` halves, where half h is partial sum h plus partial sum h + 8.
template <class V, int M, int first, int count>
[[gnu::always_inline]] inline void sum_tree(const float* a, const float* b, std::int64_t steps,
                                            V (&sums)[M]) {
  V left[M];
  if constexpr (count == 1) {
    partial_sum<V, M>(a + first * steps * M, b + first * steps * dot_nr, steps, left);
    partial_sum<V, M>(a + (first + 8) * steps * M, b + (first + 8) * steps * dot_nr, steps, sums);
  } else {
    sum_tree<V, M, first, count / 2>(a, b, steps, left);
    sum_tree<V, M, first + count / 2, count / 2>(a, b, steps, sums);
  }
  add_to<V, M>(left, sums);
}

/// C [M, n <= 16] = or += the sums of a block, ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) of the
/// halves.
template <class V, int M>
[[gnu::noinline]] void dot_packed_tile(const float* a, const float* b, std::int64_t steps, float* c,
                                       std::int64_t ldc, std::int64_t n, bool add) {
  V sums[M];
  sum_tree<V, M, 0, 8>(a, b, steps, sums);
  const auto there = V::first(n);
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
    (add ? V::load(c + i * ldc, there) + sums[i] : sums[i]).store(c + i * ldc, there);
}

template <class V, int M = V::dot_mr>
[[gnu::always_inline]] inline void dot_packed_tile_of(std::int64_t rows, const float* a,
                                                      const float* b, std::int64_t steps, float* c,
                                                      std::int64_t ldc, std::int64_t n, bool add) {
  if constexpr (M > 0) {
    if (rows == M) return dot_packed_tile<V, M>(a, b, steps, c, ldc, n, add);
    dot_packed_tile_of<V, M - 1>(rows, a, b, steps, c, ldc, n, add);
  }
}

/// Computes C from packed tiles and panels, a few columns at a time, which stay in the L2 cache
/// while all tiles use them.
template <class V>
void dot_packed_gemm(const PackedGemm& p) {
  constexpr std::int64_t group = 8 * dot_nr;
  for (std::int64_t from = 0; from < p.k_groups; from += dot_kc) {
    const std::int64_t depth = p.k_groups - from < dot_kc ? p.k_groups - from : dot_kc;
    for (std::int64_t first = 0; first < p.n; first += group) {
      const std::int64_t end = p.n - first < group ? p.n : first + group;
      for (std::int64_t m = 0; m < p.m; m += p.mr) {
        const std::int64_t height = p.m - m < p.mr ? p.m - m : p.mr;
        const float* rows = p.a + m * p.k_groups + from * height;
        for (std::int64_t n = first; n < end; n += dot_nr)
          dot_packed_tile_of<V>(height, rows, p.b + n * p.k_groups + from * dot_nr, depth / 16,
                                p.c + m * p.ldc + n, p.ldc, end - n, from > 0 || p.accumulate);
      }
    }
  }
}

template <class V>
constexpr GemmKernel dot_kernel() {
  return {.mr = V::dot_mr,
          .nr = dot_nr,
          .k_pack = 1,
          .k_align = 16,
          .k_split = dot_kc,
          .pack = pack_dot_panel<V>,
          .gemm = dot_packed_gemm<V>};
}

/// gemm_nt of many rows, too small for several threads.
template <class V>
void gemm_nt_packed(const GemmArgs& p, float* scratch) {
  constexpr std::int64_t M = V::dot_mr, columns_at_once = 256;
  float* panels = scratch;
  float* rows = scratch + columns_at_once * dot_kc;
  for (std::int64_t k = 0; k < p.k; k += dot_kc) {
    const std::int64_t depth = p.k - k < dot_kc ? p.k - k : dot_kc, steps = whole_steps(depth);
    for (std::int64_t n = 0; n < p.n; n += columns_at_once) {
      const std::int64_t columns = p.n - n < columns_at_once ? p.n - n : columns_at_once;
      for (std::int64_t j = 0; j < columns; j += dot_nr) {
        const std::int64_t count = columns - j < dot_nr ? columns - j : dot_nr;
        pack_dot_panel<V>({p.b + (n + j) * p.ldb + k, p.ldb, count, depth, dot_nr, false},
                          panels + j * steps);
      }
      for (std::int64_t m = 0; m < p.m; m += M) {
        const std::int64_t height = p.m - m < M ? p.m - m : M;
        pack_dot_panel<V>(pack_rows_of_a(p, m, height, k, depth), rows);
        dot_packed_gemm<V>({height, columns, steps, height, rows, panels, p.c + m * p.ldc + n,
                            p.ldc, k > 0 || p.accumulate});
      }
    }
  }
}

}  // namespace troupe::engine::ops::cpu::kernels
