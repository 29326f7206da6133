// Softmax of attention scores between the two products, in either precision.
#pragma once

#include <cmath>

#include "engine/ops/cpu/attention/kv_runs.h"
#include "engine/ops/cpu/kernels/kernels.h"

namespace troupe::engine::ops::cpu {

/// Softmax of attention scores, and its backward pass. Rows of q are addressed as (row, head)
/// pairs, row * H + head.
class AttentionSoftmax {
 public:
  AttentionSoftmax(const Kernels& kernels, const SeenKeys& seen, const AttentionInputs& in)
      : kernels_(kernels), seen_(seen), shape_(in.shape), dropout_(in.dropout) {}
  /// Returns the keys that the row of a pair sees.
  KeyRange keys_of(std::int64_t pair) const;
  /// Converts products q.k with the keys `of` to unnormalized weights e with dropout, whose sums
  /// are those without. Keys that the row does not see get zeros.
  SoftmaxSums forward(std::int64_t pair, KeyRange of, float* products) const;
  /// Converts products q.k with the keys `of` to weights p with dropout, and products dout.v to
  /// gradients of the products q.k. Keys that the row does not see get zeros; `of` may lack some
  /// that it sees. `dot`: out.dout.
  void backward(std::int64_t pair, KeyRange of, float dot, float lse, float* p, float* ds) const;

 private:
  /// Factor of the scores in the softmax: 1 if cap() or add_alibi_bias() has scaled them already.
  float factor() const {
    return shape_.softcap == 0 && shape_.alibi_slopes.empty() ? shape_.scale : 1;
  }
  /// Scales and caps scores.
  void cap(float* scores, KeyRange keys) const;
  void add_alibi_bias(float* scores, std::int64_t pair, KeyRange keys) const;

  /// Drops weights of a pair, or gradients by them.
  void drop(std::int64_t pair, KeyRange keys, float* weights) const;

  const Kernels& kernels_;
  const SeenKeys& seen_;
  const AttentionShape& shape_;
  const AttentionDropout* dropout_;
};

inline float lse_of(const SoftmaxSums& sums) {
  return static_cast<float>(double{sums.largest} + std::log(sums.sum));
}

}  // namespace troupe::engine::ops::cpu
