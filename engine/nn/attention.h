// Attention: causal self-attention with grouped heads, over packed sequences or a paged cache.
#pragma once

#include "engine/nn/linear.h"
#include "engine/nn/norm.h"
#include "engine/nn/rotary.h"

namespace troupe::engine::nn {

struct Attention {
  Linear q, k, v, o;          ///< with o.tp, each rank has some of the heads
  ops::AttentionShape shape;  ///< this rank's heads, with their ALiBi slopes
  /// Covers every position of the pass; nullptr: no rotary embedding.
  const RotaryTable* rotary = nullptr;
  int layer = 0;  ///< index into the cache
  /// Norms before the rotary embedding: over each head (gain [K]) or the whole row (gain [heads *
  /// K]).
  Norm q_norm = {}, k_norm = {};

  /// x [T, D] -> [T, D]. Where there is a cache, the new keys and values are written to it first.
  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const;

  // With pass.context attention is over rows of other ranks, too (context_part.h).

  /// Views x [rows, heads * K] as the rows that `norm` normalizes: [rows * heads, K] where it is
  /// over each head.
  Tensor rows_of(const Norm& norm, const Tensor& x) const;
};

}  // namespace troupe::engine::nn
