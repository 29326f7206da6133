// Vocabularies of the tiktoken library (github.com/openai/tiktoken): lines "BASE64 RANK", as in
// qwen.tiktoken of Qwen's first generation and in tokenizer.model of GLM-4. They are converted to a
// tokenizer.json.
#pragma once

#include <string>

#include "engine/tokenizer/formats/slow_files.h"

namespace troupe::engine::tokenizer {

/// Name of the file in Qwen's folders.
inline constexpr const char* qwen_tiktoken = "qwen.tiktoken";

/// Whether the file at `path` of a folder with this tokenizer class has a tiktoken vocabulary.
bool is_tiktoken(const std::string& path, const std::string& tokenizer_class);

/// Reads the vocabulary and the special tokens of the class: those of Qwen follow the vocabulary,
/// those of GLM-4 are in `config`, the folder's tokenizer_config.json; GLM-4 starts a text with
/// [gMASK]<sop>. Every pair of tokens whose concatenation is a token may be merged, with its rank,
/// as in tiktoken. Errc::bad_input, with the line, for a malformed file.
Result<SlowFiles> read_tiktoken(const std::string& path, const Json& config);

}  // namespace troupe::engine::tokenizer
