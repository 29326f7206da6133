// The paths of scorers and trainers.
#pragma once

#include <cstdint>
#include <vector>

#include "launch/parity/paths.h"

namespace troupe::launch::parity {

/// train::head_outputs().
std::vector<TextValues> score(const PathInputs& in);
/// The passes of a trainer over micro-batches, of a loss whose gradients are known after the
/// forward pass, or before it. On a decoder without pipeline stages.
std::vector<TextValues> train(const PathInputs& in);
std::vector<TextValues> train_at_once(const PathInputs& in);

/// [ids] log-probabilities of these tokens at one position of a text, by train::scores().
std::vector<float> scored_tokens(const PathInputs& in, const Text& text, std::int32_t position,
                                 const std::vector<std::int32_t>& ids);

}  // namespace troupe::launch::parity
