// Pre-tokenizers that also rewrite the text.
#pragma once

#include "engine/tokenizer/pre_tokenizers/pre_tokenizer.h"

namespace troupe::engine::tokenizer {

/// ByteLevel (GPT-2): splits by a pattern and writes bytes as characters (byte_alphabet.h). With
/// `raw_bytes` bytes are left as they are.
Result<std::unique_ptr<PreTokenizer>> make_byte_level(const Json& options, bool raw_bytes,
                                                      std::string_view where);

/// Metaspace (SentencePiece): writes spaces as a replacement character and splits before it.
Result<std::unique_ptr<PreTokenizer>> make_metaspace(const Json& options, std::string_view where);

}  // namespace troupe::engine::tokenizer
