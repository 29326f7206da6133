// BertNormalizer: BERT's text cleaning (Hugging Face tokenizers, normalizers/bert.rs).
#pragma once

#include "engine/tokenizer/normalizers/normalizer.h"

namespace troupe::engine::tokenizer {

Result<std::unique_ptr<Normalizer>> make_bert_normalizer(const Json& options,
                                                         std::string_view where);

}  // namespace troupe::engine::tokenizer
