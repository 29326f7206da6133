// Tensors in the files of a model folder for the parameters of a model.
#pragma once

#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/models/storage.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

/// The tensors in the layout of the family of `config`; `where` is its path. Parameters that the
/// config does not describe (all, where it is null or names no family) are stored unchanged under
/// their own names. Adapters are omitted. Errors of read_spec; Errc::bad_input.
Result<std::vector<models::StoredTensor>> stored_map(const Json& config, const std::string& where,
                                                     const nn::Parameters& parameters);

/// A parameter alone, without any conversion, under the name `name`.
models::StoredTensor unchanged(const nn::Parameter& parameter, std::string name);

/// stored_map() for a folder with or without a config.json; `tied` overrides the file.
Result<std::vector<models::StoredTensor>> stored_in(const std::string& folder,
                                                    const nn::Parameters& parameters, bool tied);

}  // namespace troupe::engine::checkpoint
