// Tensors that are meant to learn and do not: an expert that is never chosen, a part of the model
// that the loss does not see.
#pragma once

#include <string>
#include <vector>

#include "engine/nn/parameters.h"

namespace troupe::engine::train {

/// The trained tensors whose gradient is exactly 0 on this rank.
std::vector<std::string> without_gradient(const nn::Parameters& parameters);

/// What there is to warn of before update `step` (from 1): in the first and the tenth some tensors,
/// by name, have no gradient though others have. "" otherwise. In the first, adapters are passed
/// over: one of their two factors begins at 0, and so does the other's gradient.
std::string zero_gradient_warning(const nn::Parameters& parameters, std::int64_t step);

}  // namespace troupe::engine::train
