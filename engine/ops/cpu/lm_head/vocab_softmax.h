// Log-probabilities over a vocabulary, from softmax sums over its blocks.
#pragma once

#include <cstdint>
#include <span>

#include "engine/ops/cpu/kernels/kernels.h"

namespace troupe::engine::ops::cpu {

/// Columns of a block. The sums of a softmax are computed per block and joined in order, so this is
/// part of the order of summation.
inline constexpr std::int64_t lm_head_block = 896;
constexpr std::int64_t lm_head_blocks(std::int64_t vocabulary) {
  return (vocabulary + lm_head_block - 1) / lm_head_block;
}

/// The one definition of a token's log-probability, for training and for sampling.
struct TokenLogprob {
  float lse, entropy;
  explicit TokenLogprob(const SoftmaxSums& sums);
  float logp(float logit, float inv_temperature) const { return logit * inv_temperature - lse; }
};

/// The logits of one row in a block of columns.
struct RowBlock {
  const float* logits;   ///< [columns]
  std::int64_t columns;  ///< at most lm_head_block
  std::int64_t begin;    ///< of the block, a multiple of lm_head_block
  /// The columns of the whole row that its softmax is over (ColumnMask), or nullptr: all.
  const std::uint64_t* kept;

  /// Copies the kept logits to `to`, in the order of the columns, and returns their number.
  std::int64_t gather(float* to) const;
  /// Assigns row [columns]: `values`, one for each kept column, and 0.
  void scatter(const float* values, float* row) const;
};

/// Returns the sums of a block over its kept columns, in their order; their largest is -inf where
/// none is kept.
SoftmaxSums softmax_over(const Kernels& kernels, const RowBlock& block, float inv_temperature,
                         bool weighted);

/// Returns the sums over a row from those over its blocks.
SoftmaxSums join_blocks(std::span<const SoftmaxSums> blocks);

}  // namespace troupe::engine::ops::cpu
