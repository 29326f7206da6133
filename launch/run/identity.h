// Identity: what a run was created from, as checksums of the content of its inputs (InputPart) and
// the values of the settings that affect its results. The run's directory and the training state of
// every checkpoint record it; a run that resumes is compared with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::launch {

/// One file of an input. Its folder is not part of the identity.
struct PartFile {
  std::string name;  ///< "model.safetensors"
  std::uint64_t bytes = 0;
  std::string xxh3;  ///< XXH3-128 of the content; prefixed with "sampled-" if parts were hashed
  std::string path;  ///< where it was read; empty in a record
};

/// Inputs that a run may get, lose and replace: their changes are reported.
inline constexpr std::string_view chat_template_part = "chat_template", eval_part = "eval.path";
/// A run may get a reference (grpo.beta above 0) or lose it, but not replace it.
inline constexpr std::string_view reference_part = "reference";

/// One input: the files of a model, of a tokenizer, the data.
struct InputPart {
  std::string name;  ///< "model", "tokenizer", "reference", "reward model LABEL", ...
  std::vector<PartFile> files;
};

/// A difference that is reported.
struct Change {
  std::string key, was, now;
};

struct Identity {
  std::vector<InputPart> parts;
  std::vector<std::pair<std::string, std::string>> settings;  ///< key and value as YAML

  Json to_json() const;
  /// Errc::corrupt.
  static Result<Identity> from_json(const Json& json, const std::string& where);
};

struct Comparison {
  /// What makes resuming impossible, a sentence each: another model, tokenizer, reference, reward
  /// model, adapter, data, seed, model_overrides.
  std::vector<std::string> rejected;
  std::vector<Change> changed;
};

/// Compares a record with the run as it is started now. A setting that only one of the two has (of
/// another version of troupe) is not compared.
Comparison compare(const Identity& recorded, const Identity& now);

}  // namespace troupe::launch
