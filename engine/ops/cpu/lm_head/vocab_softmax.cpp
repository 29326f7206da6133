#include "engine/ops/cpu/lm_head/vocab_softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace troupe::engine::ops::cpu {

namespace {

/// Calls visit(column of the block) for its kept columns, in ascending order.
template <class Visit>
void for_each_kept(const RowBlock& block, const Visit& visit) {
  static_assert(lm_head_block % 64 == 0, "a block begins with a word of the mask");
  const std::uint64_t* words = block.kept + block.begin / 64;
  for (std::int64_t first = 0; first < block.columns; first += 64)
    for (std::uint64_t word = words[first / 64]; word != 0; word &= word - 1)
      visit(first + std::countr_zero(word));
}

}  // namespace

std::int64_t RowBlock::gather(float* to) const {
  std::int64_t count = 0;
  for_each_kept(*this, [&](std::int64_t column) { to[count++] = logits[column]; });
  return count;
}

void RowBlock::scatter(const float* values, float* row) const {
  std::fill_n(row, columns, 0.0F);
  for_each_kept(*this, [&](std::int64_t column) { row[column] = *values++; });
}

SoftmaxSums softmax_over(const Kernels& kernels, const RowBlock& block, float inv_temperature,
                         bool weighted) {
  if (block.kept == nullptr)
    return kernels.softmax_sums(block.logits, block.columns, inv_temperature, weighted);
  float kept[lm_head_block];
  const std::int64_t count = block.gather(kept);
  if (count == 0) return {-std::numeric_limits<float>::infinity(), 0, 0};
  return kernels.softmax_sums(kept, count, inv_temperature, weighted);
}

TokenLogprob::TokenLogprob(const SoftmaxSums& sums) {
  if (sums.largest == -std::numeric_limits<float>::infinity() && sums.sum == 0) {
    lse = sums.largest;  // no column is kept
    entropy = 0;
    return;
  }
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
