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

/// Returns the sums over a row from those over its blocks.
SoftmaxSums join_blocks(std::span<const SoftmaxSums> blocks);

}  // namespace troupe::engine::ops::cpu
