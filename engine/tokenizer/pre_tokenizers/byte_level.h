// ByteLevel (GPT-2): splits by a pattern and writes bytes as characters (byte_alphabet.h).
#pragma once

#include "engine/tokenizer/pre_tokenizers/pre_tokenizer.h"

namespace troupe::engine::tokenizer {

/// Creates the pre-tokenizer. `raw_bytes`: bytes are left as they are.
Result<std::unique_ptr<PreTokenizer>> make_byte_level(const Json& options, bool raw_bytes,
                                                      std::string_view where);

}  // namespace troupe::engine::tokenizer
