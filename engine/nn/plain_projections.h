// PlainProjections: queries, keys and values of grouped heads, each a product of the same rows.
#pragma once

#include "engine/nn/linear.h"
#include "engine/nn/norm.h"

namespace troupe::engine::nn {

/// The three operands of attention, before the rotary embedding, and their gradients.
struct HeadTensors {
  Tensor queries;       ///< [T, H*K]
  Tensor keys, values;  ///< [T, G*K]
};

/// `norm` over x [rows, heads * K], viewed as the rows that it normalizes: [rows * heads, K] where
/// its gain is [K].
Tensor normed_heads(const Norm& norm, const Tensor& x, const ForwardContext& pass, Saved& saved);
Tensor normed_heads_backward(const Norm& norm, const Tensor& dy, const ForwardContext& pass,
                             Saved& saved);

struct PlainProjections {
  Linear q, k, v;
  /// Norms of queries and keys: over each head (gain [K]) or the whole row (gain [heads * K]).
  Norm q_norm = {}, k_norm = {};

  /// x [T, D] -> the operands.
  HeadTensors forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  /// Gradients of the operands -> dx [T, D]. Adds into the gradients of the weights.
  Tensor backward(const HeadTensors& grads, const ForwardContext& pass, Saved& saved) const;
  /// out [T, H*K] of attention -> what the output projection reads.
  Tensor outputs(const ForwardContext&, const Tensor& out) const { return out; }
  Tensor outputs_backward(const ForwardContext&, const Tensor& dy) const { return dy; }
};

}  // namespace troupe::engine::nn
