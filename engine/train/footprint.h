// Footprint: peak device memory of a Trainer, predicted before it runs. Saved activations are
// counted exactly, as engine/nn pushes them; temporary memory is an estimate.
#pragma once

#include <cstdint>

#include "engine/models/split.h"
#include "engine/nn/forward_context.h"

namespace troupe::engine::train {

/// Floats that the forward pass of one token saves on one rank for its backward pass, in a model
/// without frozen weights.
std::int64_t kept_floats(const models::DecoderSpec& spec, const nn::Recomputed& recomputed,
                         const models::Split& split);

/// Peak memory in bytes.
struct Footprint {
  std::uint64_t weights = 0, gradients = 0, moments = 0;  ///< exact
  std::uint64_t kept = 0;      ///< saved activations of a micro-batch; exact without frozen weights
  std::uint64_t passing = 0;   ///< gradients of activations
  std::uint64_t products = 0;  ///< packed operands, and logits of the language head
  std::uint64_t activations() const { return kept + passing + products; }
  std::uint64_t peak() const { return weights + gradients + moments + activations(); }
};

/// Footprint of the rank with this part of the model and `tokens` in its largest micro-batch.
/// precision: of the products. grads_known: the loss has Needs::grad_is_input_independent.
Footprint footprint(const models::DecoderSpec& spec, const nn::Recomputed& recomputed,
                    std::int64_t tokens, const models::Split& split, bool grads_known,
                    ops::Precision precision = ops::Precision::f32);

}  // namespace troupe::engine::train
