// Values of config.json that a user replaces: scaling of rotary positions, theta, windows, the
// number of positions, and others that leave the weights as they are.
#pragma once

#include <string>

#include "engine/base/json/json.h"

namespace troupe::engine::models {

/// `config` with the members of `overrides`, an object or null (none). A null member removes a
/// scaling or a window. Where the file has rope_parameters (transformers 5), rope_theta and
/// rope_scaling change that object. `where` is the file's path, for messages.
/// Errc::usage for a key that neither the file has nor the list of known ones, for another
/// architecture, and where names or shapes of weights would change; errors of read_spec().
Result<Json> with_overrides(Json config, const Json& overrides, const std::string& where);

}  // namespace troupe::engine::models
