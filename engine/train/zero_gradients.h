// Detection of trained tensors without a gradient: an expert that is never routed to, a part of the
// model that the loss does not depend on.
#pragma once

#include <string>
#include <vector>

#include "engine/nn/arena_shards.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::train {

/// Names of the trained tensors whose gradient is exactly 0 on this rank. `shards`: the replicas
/// that each have a part of the summed gradients (nullptr: this rank has all); collective.
std::vector<std::string> zero_gradient_names(const nn::Parameters& parameters,
                                             const nn::ArenaShards* shards = nullptr);

/// Warning before update `step` (from 1): at the first and the tenth update, names the tensors
/// without a gradient where others have one; otherwise "". The first update skips adapters: one of
/// their two factors starts at 0, and so does the gradient of the other.
std::string zero_gradient_warning(const nn::Parameters& parameters, std::int64_t step,
                                  const nn::ArenaShards* shards = nullptr);

}  // namespace troupe::engine::train
