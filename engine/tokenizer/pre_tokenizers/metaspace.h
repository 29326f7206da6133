// Metaspace (SentencePiece): writes spaces as a replacement character and splits before it.
#pragma once

#include "engine/tokenizer/pre_tokenizers/pre_tokenizer.h"

namespace troupe::engine::tokenizer {

Result<std::unique_ptr<PreTokenizer>> make_metaspace(const Json& options, std::string_view where);

}  // namespace troupe::engine::tokenizer
