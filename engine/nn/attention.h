// Attention: causal self-attention with grouped heads, over packed sequences or a paged cache.
#pragma once

#include <optional>

#include "engine/nn/latent_projections.h"
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
  /// Takes the place of q, k, v and their norms.
  std::optional<LatentProjections> latent = {};
  /// Numbers in the whole model, of the dropout.
  std::int64_t first_head = 0;
  std::uint32_t number = 0;

  /// x [T, D] -> [T, D]. Where there is a cache, the new keys and values are written to it first.
  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const;

  // With pass.context attention is over rows of other ranks, too (context_part.h).

 private:
  HeadTensors project(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  /// dx [rows, D] from the gradients of project()'s results.
  Tensor project_backward(HeadTensors grads, const ForwardContext& pass, Saved& saved) const;
};

}  // namespace troupe::engine::nn
