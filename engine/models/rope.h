// Rotary frequencies with the scaling rules of config.json, in both layouts: "rope_parameters" (transformers 5) and
// "rope_theta" with "rope_scaling" (version 4).
#pragma once

#include <vector>

#include "engine/base/json.h"

namespace troupe::engine::models {

/// [head_size / 2] radians per position. Known types: default, linear (kaiokendev's interpolation), llama3 (Dubey et al. 2024).
/// Another type is Errc::unsupported, by name.
Result<std::vector<double>> rotary_frequencies(const Json& config, const std::string& where, int head_size);

}  // namespace troupe::engine::models
