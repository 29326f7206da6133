// Identity: what a run was created from, as checksums of the content of its inputs (InputPart) and
// the values of the settings that affect its results. The run's directory and the training state of
// every checkpoint record it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::engine::checkpoint {

/// One file of an input. Its folder is not part of the identity.
struct PartFile {
  std::string name;  ///< "model.safetensors"
  std::uint64_t bytes = 0;
  std::string xxh3;  ///< XXH3-128 of the content; prefixed with "sampled-" if parts were hashed
  std::string path;  ///< where it was read; empty in a record
};

/// One input: the files of a model, of a tokenizer, the data.
struct InputPart {
  std::string name;  ///< "model", "tokenizer", "reference", "reward model LABEL", ...
  std::vector<PartFile> files;
};

struct Identity {
  std::vector<InputPart> parts;
  std::vector<std::pair<std::string, std::string>> settings;  ///< key and value as YAML

  Json to_json() const;
  /// Errc::corrupt.
  static Result<Identity> from_json(const Json& json, const std::string& where);
};

/// Its key in a checkpoint's training state (SavedState::state).
inline constexpr const char* identity_key = "identity";

/// What a training state read from `where` records; nullopt: an earlier version wrote it.
/// Errc::corrupt.
Result<std::optional<Identity>> identity_in(const Json& state, const std::string& where);

}  // namespace troupe::engine::checkpoint
