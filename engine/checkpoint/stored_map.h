// Which tensors the files of a model folder have for the parameters of a model.
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/models/storage.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

/// As the family of `config` stores them; `where` is its path. A parameter that the config does not
/// describe, as any where it names no family or is null, is stored as it is under its own name.
/// Adapters are left out. What read_spec gives; Errc::bad_input.
Result<std::vector<models::StoredTensor>> stored_map(const Json& config, const std::string& where,
                                                     const nn::Parameters& parameters);

/// The same for a folder with or without a config.json, whose model is tied or not, whatever the
/// file says.
Result<std::vector<models::StoredTensor>> stored_in(const std::string& folder,
                                                    const nn::Parameters& parameters, bool tied);

}  // namespace troupe::engine::checkpoint
