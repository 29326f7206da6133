#include "engine/ops/cpu/attention/softmax.h"

#include <algorithm>
#include <utility>

namespace troupe::engine::ops::cpu {
namespace {

/// Zeros the values of keys `of` outside the row's own.
void clear_around(float* row, KeyRange of, KeyRange own) {
  std::fill(row, row + (own.first - of.first), 0.0F);
  std::fill(row + (own.end - of.first), row + of.count(), 0.0F);
}

}  // namespace

KeyRange AttentionSoftmax::keys_of(std::int64_t pair) const {
  return seen_.at(pair / shape_.heads);
}

void AttentionSoftmax::cap(float* scores, KeyRange keys) const {
  if (shape_.softcap != 0) return kernels_.cap(scores, keys.count(), shape_.scale, shape_.softcap);
  if (!shape_.alibi_slopes.empty()) kernels_.scale(scores, shape_.scale, keys.count());
}

void AttentionSoftmax::add_alibi_bias(float* scores, std::int64_t pair, KeyRange keys) const {
  if (shape_.alibi_slopes.empty()) return;
  const float slope = shape_.alibi_slopes[static_cast<std::size_t>(pair % shape_.heads)];
  kernels_.add_alibi_bias(scores, keys.count(), slope,
                          keys.first - seen_.position(pair / shape_.heads));
}

void AttentionSoftmax::drop(std::int64_t pair, KeyRange keys, float* weights) const {
  if (dropout_ == nullptr) return;
  const auto head = static_cast<std::uint32_t>(dropout_->first_head + pair % shape_.heads);
  const DropoutRow row(dropout_->probability, dropout_->key,
                       dropout_->rows.host[static_cast<std::size_t>(pair / shape_.heads)],
                       dropout_->layer << 16 | head);
  kernels_.dropout(row, static_cast<std::uint64_t>(keys.first), weights, weights, keys.count());
}

SoftmaxSums AttentionSoftmax::forward(std::int64_t pair, KeyRange of, float* products) const {
  const KeyRange own = keys_of(pair);
  float* at = products + (own.first - of.first);
  cap(at, own);
  add_alibi_bias(at, pair, own);
  const SoftmaxSums sums = kernels_.softmax_in_place(at, own.count(), factor());
  drop(pair, own, at);
  clear_around(products, of, own);
  return sums;
}

void AttentionSoftmax::backward(std::int64_t pair, KeyRange of, float dot, float lse, float* p,
                                float* ds) const {
  const KeyRange own = keys_of(pair).within(of);
  const std::int64_t before = own.first - of.first;
  drop(pair, own, ds + before);
  cap(p + before, own);
  if (shape_.softcap != 0)
    kernels_.cap_backward(p + before, ds + before, own.count(), shape_.softcap,
                          std::exchange(dot, 0.0F));
  add_alibi_bias(p + before, pair, own);
  kernels_.attention_weights(p + before, own.count(), factor(), lse);
  kernels_.attention_dscores(p + before, ds + before, own.count(), dot, shape_.scale);
  drop(pair, own, p + before);
  for (float* row : {p, ds}) clear_around(row, of, own);
}

}  // namespace troupe::engine::ops::cpu
