// Attention of one row whose heads have keys and values of their own, read in place. Each element
// has the summation order of its matrix product (micro_dot.h, micro_nn.h), so a row alone has the
// bits of a row among others. Packing, which costs more than the products themselves, is saved, and
// keys are read row by row, once for all heads.
#pragma once

#include "engine/ops/cpu/gemm/micro_dot.h"

namespace troupe::engine::ops::cpu::kernels {

/// Computes N scores at a time from columns [column, column + depth) of the keys. `left` holds the
/// columns of q, padded to a multiple of 16.
template <class V, int N>
[[gnu::always_inline]] inline std::int64_t score_keys(const DecodeHeads& of, const float* left,
                                                      std::int64_t column, std::int64_t depth,
                                                      std::int64_t key, float* scores, bool add) {
  for (; key + N <= of.keys; key += N) {
    const DotOperand right{of.rows + key * of.ld + column, of.ld, 16, static_cast<int>(depth % 16),
                           of.prefetch};
    dot_tile<V, 1, N, N>(left, right, (depth + 15) / 16, N, scores + key, 0, add);
  }
  return key;
}

template <class V>
void decode_scores(const DecodeHeads& of, const float* q) {
  float filled[dot_kc];
  for (std::int64_t h = 0; h < of.heads; ++h) {
    for (std::int64_t at = 0; at < of.size; at += dot_kc) {
      const std::int64_t depth = of.size - at < dot_kc ? of.size - at : dot_kc,
                         column = h * of.size + at;
      const float* left = q + column;
      if (depth % 16 != 0) {
        for (std::int64_t i = 0; i < depth; i += 16)
          V::load(left + i, V::first(depth - i)).store(filled + i);
        left = filled;
      }
      float* scores = of.weights + h * of.ld_weights;
      std::int64_t key =
          score_keys<V, V::few_rows_columns(1)>(of, left, column, depth, 0, scores, at > 0);
      key = score_keys<V, 4>(of, left, column, depth, key, scores, at > 0);
      score_keys<V, 1>(of, left, column, depth, key, scores, at > 0);
    }
  }
}

/// Computes 16 N columns of a head, of which the last sixteen may be partial.
template <class V, int N>
void value_columns(const DecodeHeads& of, const float* rows, const float* weights,
                   std::int64_t columns, float* out, bool add) {
  const auto mask = V::first(columns - 16 * (N - 1));
  V sums[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j)
    sums[j] = !add ? V::zero() : j + 1 < N ? V::load(out + 16 * j) : V::load(out + 16 * j, mask);
  for (std::int64_t key = 0; key < of.keys; ++key, rows += of.ld) {
    const V weight = V::set(weights[key]);
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      __builtin_prefetch(rows + of.prefetch + 16 * j, 0, 2);
      sums[j] = V::fma(weight, j + 1 < N ? V::load(rows + 16 * j) : V::load(rows + 16 * j, mask),
                       sums[j]);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j + 1 < N; ++j) sums[j].store(out + 16 * j);
  sums[N - 1].store(out + 16 * (N - 1), mask);
}

template <class V>
void decode_values(const DecodeHeads& of, float* out, bool add) {
  for (std::int64_t h = 0; h < of.heads; ++h) {
    const float* weights = of.weights + h * of.ld_weights;
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

}  // namespace troupe::engine::ops::cpu::kernels
