// Products of one row's separate heads with keys and values where they lie. Each element has the
// order of summation of its matrix product (kernels_dot.h, kernels_outer.h), so a row alone has the
// bits of a row among others; what is saved is packing, which costs more than the products
// themselves, and keys are read row by row, once for all heads.
#pragma once

#include "engine/ops/cpu/kernels_dot.h"

namespace troupe::engine::ops::kernels {

/// products[h, key] of columns [at, at + depth) of the head, of which `left` has copies that go on
/// to whole sixteens.
template <class V, int N>
[[gnu::always_inline]] inline std::int64_t score_keys(const RowHeads& of, const float* left,
                                                      std::int64_t column, std::int64_t depth,
                                                      std::int64_t key, float* scores, bool add) {
  for (; key + N <= of.keys; key += N) {
    const DotOperand right{of.rows + key * of.apart + column, of.apart, 16,
                           static_cast<int>(depth % 16), of.ahead};
    dot_tile<V, 1, N, N>(left, right, (depth + 15) / 16, N, scores + key, 0, add);
  }
  return key;
}

template <class V>
void row_scores(const RowHeads& of, const float* q) {
  float filled[k_block];
  for (std::int64_t h = 0; h < of.heads; ++h) {
    for (std::int64_t at = 0; at < of.size; at += k_block) {
      const std::int64_t depth = of.size - at < k_block ? of.size - at : k_block,
                         column = h * of.size + at;
      const float* left = q + column;
      if (depth % 16 != 0) {
        for (std::int64_t i = 0; i < depth; i += 16)
          V::load(left + i, V::first(depth - i)).store(filled + i);
        left = filled;
      }
      float* scores = of.weights + h * of.pitch;
      std::int64_t key =
          score_keys<V, V::direct_columns(1)>(of, left, column, depth, 0, scores, at > 0);
      key = score_keys<V, 4>(of, left, column, depth, key, scores, at > 0);
      score_keys<V, 1>(of, left, column, depth, key, scores, at > 0);
    }
  }
}

/// Of 16 N columns of a head, the last sixteen of which may be fewer.
template <class V, int N>
void value_columns(const RowHeads& of, const float* rows, const float* weights,
                   std::int64_t columns, float* out, bool add) {
  const auto mask = V::first(columns - 16 * (N - 1));
  V sums[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j)
    sums[j] = !add ? V::zero() : j + 1 < N ? V::load(out + 16 * j) : V::load(out + 16 * j, mask);
  for (std::int64_t key = 0; key < of.keys; ++key, rows += of.apart) {
    const V weight = V::set(weights[key]);
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      __builtin_prefetch(rows + of.ahead + 16 * j, 0, 2);
      sums[j] = V::fma(weight, j + 1 < N ? V::load(rows + 16 * j) : V::load(rows + 16 * j, mask),
                       sums[j]);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j + 1 < N; ++j) sums[j].store(out + 16 * j);
  sums[N - 1].store(out + 16 * (N - 1), mask);
}

template <class V>
void row_values(const RowHeads& of, float* out, bool add) {
  for (std::int64_t h = 0; h < of.heads; ++h) {
    const float* weights = of.weights + h * of.pitch;
    for (std::int64_t at = 0; at < of.size; at += 64) {
      const std::int64_t column = h * of.size + at, columns = of.size - at < 64 ? of.size - at : 64;
      const float* rows = of.rows + column;
      float* to = out + column;
      if (columns > 48) {
        value_columns<V, 4>(of, rows, weights, columns, to, add);
      } else if (columns > 32) {
        value_columns<V, 3>(of, rows, weights, columns, to, add);
      } else if (columns > 16) {
        value_columns<V, 2>(of, rows, weights, columns, to, add);
      } else {
        value_columns<V, 1>(of, rows, weights, columns, to, add);
      }
    }
  }
}

}  // namespace troupe::engine::ops::kernels
