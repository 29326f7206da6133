// Footprint: how much of a device's memory a Trainer will need at most, told before it runs. What
// modules keep is counted exactly, as engine/nn pushes it; what is alive beside it is an estimate.
#pragma once

#include <cstdint>

#include "engine/models/split.h"
#include "engine/nn/forward_context.h"

namespace troupe::engine::train {

/// Floats that the forward pass of one token leaves on one rank for its backward pass, in a model
/// that is trained whole.
std::int64_t kept_floats(const models::DecoderSpec& spec, const nn::Recomputed& recomputed,
                         const models::Split& split);

/// Bytes.
struct Footprint {
  std::uint64_t weights = 0, gradients = 0, moments = 0;  ///< exact
  std::uint64_t kept = 0;  ///< for the backward pass of a micro-batch: exact where all is trained
  std::uint64_t passing = 0;   ///< gradients of hidden states and inner values beside it
  std::uint64_t products = 0;  ///< packed operands, and logits of the language head
  std::uint64_t activations() const { return kept + passing + products; }
  std::uint64_t peak() const { return weights + gradients + moments + activations(); }
};

/// Of the rank that has this part of the model, `tokens` in its largest micro-batch: hidden states
/// it has whole, of heads, inner values and vocabulary its own. slopes_known: before the forward
/// pass, by the loss's Needs::constant_slopes.
Footprint footprint(const models::DecoderSpec& spec, const nn::Recomputed& recomputed,
                    std::int64_t tokens, const models::Split& split, bool slopes_known);

}  // namespace troupe::engine::train
