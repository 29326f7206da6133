// Folders of transformers' slow tokenizers: vocab.json with merges.txt, or vocab.txt, and a class
// in tokenizer_config.json. They are converted to a tokenizer.json.
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::engine::tokenizer {

struct SlowFiles {
  Json tokenizer;  ///< as a tokenizer.json, without added tokens
  Json names;      ///< the class's own special tokens, as tokenizer_config.json would name them
};

/// Whether `folder` has such files.
bool has_slow_files(const std::string& folder);

/// `config` is the folder's tokenizer_config.json, or null; without a class there the model's type
/// in config.json counts. Errc::unsupported, by name, for an unknown class.
Result<SlowFiles> read_slow_files(const std::string& folder, const Json& config);

/// The class of tokenizer_config.json, without "Fast"; empty when there is none.
std::string tokenizer_class_of(const Json& config);

/// The member `key` if it is true or false, else `otherwise`.
bool flag_of(const Json& object, std::string_view key, bool otherwise);

}  // namespace troupe::engine::tokenizer
