// UnicodeScripts and FixedLength: words of one script, words of a fixed number of characters
// (Hugging Face tokenizers, pre_tokenizers/).
#pragma once

#include "engine/tokenizer/pre_tokenizers/pre_tokenizer.h"

namespace troupe::engine::tokenizer {

/// UnicodeScripts and FixedLength. nullptr for other types.
Result<std::unique_ptr<PreTokenizer>> make_script_splitter(const std::string& type,
                                                           const Json& options,
                                                           std::string_view where);

}  // namespace troupe::engine::tokenizer
