// Shortcuts past the sampling chain (distribution.h) for rows of logits that no rule changes. They
// give the token that the chain gives, always, without its lists of tokens and its exact
// exponentials: a vocabulary is large, and the chain is as slow as the model for a small one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/generate/sampling_params.h"

namespace troupe::engine::generate {

/// Neither a penalty nor a filter is set: the chain does nothing to a row but divide it by the
/// temperature.
bool is_plain(const SamplingParams& params);

/// The index of the first logit that is not finite, or -1.
std::int64_t first_not_finite(std::span<const float> logits);

/// The place of the largest of finite logits, the first among equals.
std::int32_t argmax(std::span<const float> logits);

/// The token that `u` in [0, 1) falls on in softmax(logits / temperature), finite logits, where
/// sums of lower precision than the chain's can tell; nothing where u lies so near the border
/// between two tokens (1e-9) that the chain has to be asked, or logits are huge.
std::optional<std::int32_t> quick_draw(std::span<const float> logits, double temperature, double u);

}  // namespace troupe::engine::generate
