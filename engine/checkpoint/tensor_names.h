// Finding tensors in the weights of a model folder, also under the other names that files in the
// wild have for them, and refusing those that the model has no place for.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/checkpoint/safetensors_folder.h"
#include "engine/models/storage.h"

namespace troupe::engine::checkpoint {

/// Where a tensor lies: under its name, the name that __metadata__ gives for it, the name without
/// the base model's prefix ("transformer."), for a score head "classifier" or "score", and in a
/// tied model the name of the other end.
std::optional<SafetensorsFolder::Place> locate(const SafetensorsFolder& folder,
                                               const std::string& name, bool tied);

/// Errc::corrupt when the file's shape is not the expected one.
Result<> check_shape(const SafetensorsFolder::Place& place, const std::string& name,
                     std::vector<std::int64_t> expected);

/// Errc::corrupt for a tensor that is not there, with the nearest name.
tl::unexpected<Error> missing(const std::string& folder, const SafetensorsFolder& weights,
                              const std::string& name);

/// A tensor nobody asked for is a sign that config.json describes another model: Errc::corrupt.
/// Buffers that transformers recomputes, the other end of a tied model if it is equal, and the
/// language head of a model that `scores` may be there.
Result<> check_unused(const SafetensorsFolder& weights,
                      const std::unordered_set<const StoredTensor*>& used, bool tied, bool scores);

}  // namespace troupe::engine::checkpoint
