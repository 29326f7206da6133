#include "engine/ops/cpu/lm_head/vocab_softmax.h"

#include <algorithm>
#include <cmath>

namespace troupe::engine::ops::cpu {

TokenLogprob::TokenLogprob(const SoftmaxSums& sums) {
  const double log_sum = std::log(sums.sum);
  lse = static_cast<float>(double{sums.largest} + log_sum);
  entropy = static_cast<float>(log_sum - sums.weighted / sums.sum);
}

SoftmaxSums join_blocks(std::span<const SoftmaxSums> blocks) {
  SoftmaxSums all{blocks[0].largest, 0, 0};
  for (const auto& block : blocks) {
    if (block.largest != block.largest) return block;  // NaN propagates
    all.largest = std::max(all.largest, block.largest);
  }
  for (const auto& block : blocks) {
    const double below = double{block.largest} - double{all.largest}, share = std::exp(below);
    if (!(share > 0)) continue;
    all.sum += share * block.sum;
    all.weighted += share * (block.weighted + below * block.sum);
  }
  return all;
}

}  // namespace troupe::engine::ops::cpu
