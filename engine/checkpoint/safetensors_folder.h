// The weights of a model folder in the Hugging Face layout: model.safetensors, or the shards listed
// in model.safetensors.index.json. No other file of the folder is opened.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/safetensors.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view weights_file = "model.safetensors";
inline constexpr std::string_view index_file = "model.safetensors.index.json";

class SafetensorsFolder {
 public:
  /// Opens the folder's weights; the single file takes precedence, as in transformers. A shard's
  /// name must be a plain file name ending in ".safetensors"; index and shards must list the same
  /// tensors. Errc::not_found, io, corrupt, unsupported.
  static Result<SafetensorsFolder> open(const std::string& folder);

  struct Location {
    const SafetensorsFile* file;
    const StoredTensor* tensor;
  };
  /// Location of the tensor of that name, if any.
  std::optional<Location> find(std::string_view name) const;
  /// All tensors, shard by shard.
  std::vector<Location> all() const;
  /// The value of a metadata key in any shard, or nullptr.
  const std::string* metadata(std::string_view key) const;
  const std::vector<SafetensorsFile>& files() const { return files_; }

 private:
  SafetensorsFolder() = default;
  static Result<SafetensorsFolder> open_shards(const std::string& folder);

  std::vector<SafetensorsFile> files_;
};

}  // namespace troupe::engine::checkpoint
