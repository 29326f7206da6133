// Attention: causal self-attention with grouped heads, over packed sequences or a paged cache.
#pragma once

#include "engine/nn/linear.h"
#include "engine/nn/norm.h"
#include "engine/nn/rotary.h"

namespace troupe::engine::nn {

struct Attention {
  Linear q, k, v, o;          ///< with o.tp, each rank has some of the heads
  ops::AttentionShape shape;  ///< of this rank's heads, slopes too
  const RotaryTable* rotary =
      nullptr;    ///< covers every position of the pass; nullptr: queries and keys are not turned
  int layer = 0;  ///< which cache tensors are ours
  Norm q_norm = {}, k_norm = {};  ///< before the rotation; a gain [K] is over each head, a gain
                                  ///< [heads * K] over the whole row

  /// x [T, D] -> [T, D]. With pass.cache the new keys and values are written there first.
  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const;

  /// x [rows, heads * K] as the rows of `norm`: [rows * heads, K] where it is over each head.
  Tensor rows_of(const Norm& norm, const Tensor& x) const;
  /// Turns queries and keys in place, or back.
  void turn(Tensor& queries, Tensor& keys, const Pass& pass, bool back) const;
};

}  // namespace troupe::engine::nn
