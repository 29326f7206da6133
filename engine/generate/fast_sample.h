// Fast paths of the sampler (sampler.h) for rows of logits without active logits processors. They
// always return the token of the general path, without its token lists and exact exponentials: with
// a large vocabulary the general path can be as slow as a small model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/generate/sampling_params.h"

namespace troupe::engine::generate {

/// Whether no penalty and no filter is set: logits are only divided by the temperature.
bool has_no_processors(const SamplingParams& params);

/// Index of the first logit that is not finite, or -1.
std::int64_t first_nonfinite(std::span<const float> logits);

/// Index of the largest of finite logits, the first among equals.
std::int32_t argmax(std::span<const float> logits);

/// Token at quantile `u` in [0, 1) of softmax(logits / temperature), for finite logits, from sums
/// of lower precision. nullopt where u is too near the boundary between two tokens (1e-9) or logits
/// are huge: use the general path.
std::optional<std::int32_t> fast_sample(std::span<const float> logits, double temperature,
                                        double u);

}  // namespace troupe::engine::generate
