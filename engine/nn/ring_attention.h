// Ring attention (Liu et al. 2023, arXiv:2310.01889) over packed sequences: keys and values travel
// around the ranks, each of which attends to them with its own rows and merges the results by their
// log-sum-exp. Chunks are balanced for causal attention (ring_chunk()). Work is in the order of the
// ring, so results do not depend on how its ranks communicate. Inner rings (double ring attention,
// Gu et al. 2024, arXiv:2406.18485): keys pass through the ranks of one before they move on to the
// next one, so that most messages stay between neighbours. Groups of heads go around one after the
// other (ring_heads.h).
#pragma once

#include "engine/nn/context_part.h"

namespace troupe::engine::nn {

/// Rows of this rank's place in the ring. q [S, H*K], k and v [S, G*K].
struct RingInputs {
  const Tensor &q, &k, &v;
  const ops::AttentionShape& shape;
  const ops::AttentionDropout* dropout = nullptr;  ///< nullptr: none
};

/// out [S, H*K] and lse [S, H], which may be nullptr, as Device::attention() over all ranks' keys.
/// Collective over pass.context's ring.
void ring_attention(const ForwardContext& pass, const RingInputs& in, Tensor& out, Tensor* lse);
/// Assigns the gradients. dk and dv are those of the own rows by all ranks' outputs. Collective.
void ring_attention_backward(const ForwardContext& pass, const RingInputs& in,
                             const ops::AttentionBackward& with);

}  // namespace troupe::engine::nn
