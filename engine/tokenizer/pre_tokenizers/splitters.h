// Pre-tokenizers that split by the class of single characters, by script, or by length (Hugging
// Face tokenizers, pre_tokenizers/).
#pragma once

#include "engine/tokenizer/pre_tokenizers/pre_tokenizer.h"

namespace troupe::engine::tokenizer {

/// Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit. nullptr
/// for other types.
Result<std::unique_ptr<PreTokenizer>> make_class_splitter(const std::string& type,
                                                          const Json& options,
                                                          std::string_view where);

/// UnicodeScripts (words of one script) and FixedLength (words of a fixed number of characters).
/// nullptr for other types.
Result<std::unique_ptr<PreTokenizer>> make_script_splitter(const std::string& type,
                                                           const Json& options,
                                                           std::string_view where);

}  // namespace troupe::engine::tokenizer
