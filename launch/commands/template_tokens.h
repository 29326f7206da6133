// The start and end token that a model folder names for its chat template, without its tokenizer.
#pragma once

#include <optional>
#include <string>

namespace troupe::launch {

struct TemplateTokens {
  std::optional<std::string> bos, eos;
};

/// From tokenizer_config.json, and what that lacks from special_tokens_map.json; a text, or an
/// object with "content". Files that are not there, or cannot be read, name nothing: a template
/// that needs a token then says so itself.
TemplateTokens template_tokens(const std::string& folder);

}  // namespace troupe::launch
