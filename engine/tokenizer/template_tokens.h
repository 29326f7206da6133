// BOS and EOS tokens of a model folder for its chat template, read without its tokenizer.
#pragma once

#include <optional>
#include <string>

namespace troupe::launch {

struct TemplateTokens {
  std::optional<std::string> bos, eos;
};

/// Reads tokenizer_config.json, then special_tokens_map.json; a token is a string or an object with
/// "content". Files that are missing or cannot be read are ignored: a template that needs a token
/// reports that itself.
TemplateTokens template_tokens(const std::string& folder);

}  // namespace troupe::launch
