// Tokenizers that transformers 5 builds from the vocabulary of a tokenizer.json instead of reading
// the whole file (models/llama/tokenization_llama.py of release 5.24).
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "engine/base/json/json.h"

namespace troupe::engine::tokenizer {

/// Ids of text: those that tokenizer.json defines, which are also those of transformers 4, or those
/// of transformers 5.
enum class TokenizerIds { file, transformers5 };
constexpr std::array<std::string_view, 2> names_of(TokenizerIds) {
  return {"file", "transformers5"};
}

/// Whether AutoTokenizer of transformers 5 builds the tokenizer of a folder as LlamaTokenizer. The
/// objects are those of the folder's files; null: there is no such file. `file`: tokenizer.json.
bool is_llama_tokenizer(const Json& file, const Json& tokenizer_config, const Json& model_config);

/// The tokenizer.json that transformers 5 saves for a folder of that class: no normalizer, a
/// Metaspace pre-tokenizer whose prefix follows "legacy" and "add_prefix_space", and BPE that falls
/// back to bytes. Equal to `file` where that has these parts. Errc::unsupported for another model
/// than BPE; `where` starts the message.
Result<Json> as_llama_tokenizer(Json file, const Json& tokenizer_config, std::string_view where);

/// What a folder has in place of its tokenizer.json with transformers 5; "": the file itself, or
/// there is none. Errors of reading, and of as_llama_tokenizer().
Result<std::string> rebuilt_tokenizer_file(const std::string& folder);

}  // namespace troupe::engine::tokenizer
