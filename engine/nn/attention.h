// Attention: causal self-attention with grouped heads and rotary positions, over packed sequences or a paged cache.
#pragma once

#include "engine/nn/linear.h"
#include "engine/nn/rms_norm.h"
#include "engine/nn/rotary.h"

namespace troupe::engine::nn {

struct Attention {
  Linear q, k, v, o;                    ///< with o.tp, each rank has some of the heads
  ops::AttentionShape shape;            ///< of this rank's heads
  const RotaryTable* rotary = nullptr;  ///< covers every position of the pass
  int layer = 0;                        ///< which cache tensors are ours
  RmsNorm q_norm = {}, k_norm = {};     ///< [K] over each head, before the rotation; without a gain: none

  /// x [T, D] -> [T, D]. With pass.cache the new keys and values are written there first.
  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const;

  /// f on x [T, heads * K] as [T * heads, K].
  template <class F>
  Tensor over_heads(const Tensor& x, const F& f) const;
};

}  // namespace troupe::engine::nn
