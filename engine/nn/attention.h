// Attention: causal self-attention with grouped heads, over packed sequences or a paged cache.
#pragma once

#include "engine/nn/latent_projections.h"
#include "engine/nn/linear.h"
#include "engine/nn/plain_projections.h"
#include "engine/nn/rotary.h"

namespace troupe::engine::nn {

/// Attention over the operands that Projections (PlainProjections, LatentProjections) makes of the
/// rows.
template <class Projections>
struct Attention {
  Projections projections;
  Linear o;                   ///< with o.tp, each rank has some of the heads
  ops::AttentionShape shape;  ///< this rank's heads, with their ALiBi slopes
  /// Covers every position of the pass; nullptr: no rotary embedding.
  const RotaryTable* rotary = nullptr;
  int layer = 0;  ///< index into the cache
  /// Numbers in the whole model, of the dropout.
  std::int64_t first_head = 0;
  std::uint32_t number = 0;
  Norm q_norm = {}, k_norm = {};  ///< over each head, after the rotary embedding

  /// x [T, D] -> [T, D]. Where there is a cache, the new keys and values are written to it first.
  /// With pass.context attention is over rows of other ranks, too (context_part.h).
  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const;
};

extern template struct Attention<PlainProjections>;
extern template struct Attention<LatentProjections>;

}  // namespace troupe::engine::nn
