// Locating tensors in the weights of a model folder under their alternative names, and rejecting
// unexpected ones.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/checkpoint/safetensors_folder.h"
#include "engine/models/storage.h"

namespace troupe::engine::checkpoint {

/// Locates a tensor by its name, its alias in __metadata__, its name without the base model's
/// prefix
/// ("transformer."), for a score head "classifier" or "score", and in a tied model the name of the
/// other tied tensor.
std::optional<SafetensorsFolder::Location> locate(const SafetensorsFolder& folder,
                                                  const std::string& name, bool tied);

/// Errc::corrupt when the file's shape is not the expected one.
Result<> check_shape(const SafetensorsFolder::Location& location, const std::string& name,
                     std::vector<std::int64_t> expected);

/// Errc::corrupt for a missing tensor, with the nearest name.
tl::unexpected<Error> missing(const std::string& folder, const SafetensorsFolder& weights,
                              const std::string& name);

/// Errc::corrupt for unexpected tensors: config.json describes another model. Allowed are buffers
/// that transformers recomputes, an equal copy of a tied tensor and, with `scores`, a language
/// head.
Result<> check_unused(const SafetensorsFolder& weights,
                      const std::unordered_set<const StoredTensor*>& used, bool tied, bool scores);

}  // namespace troupe::engine::checkpoint
