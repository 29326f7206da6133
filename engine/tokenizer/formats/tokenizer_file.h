// Reads the files of a tokenizer: tokenizer.json (Hugging Face tokenizers,
// tokenizer/serialization.rs), a SentencePiece tokenizer.model, or the files of slow tokenizers,
// with tokenizer_config.json and special_tokens_map.json in the same folder.
#pragma once

#include <memory>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/tokenizer/formats/transformers5.h"
#include "engine/tokenizer/pipeline/pipeline.h"

namespace troupe::engine::tokenizer {

/// Whether `folder` has files that read_tokenizer() supports.
bool has_tokenizer_files(const std::string& folder);

/// Implements Tokenizer::load().
Result<std::shared_ptr<const Pipeline>> read_tokenizer(const std::string& path, TokenizerIds ids);

}  // namespace troupe::engine::tokenizer
