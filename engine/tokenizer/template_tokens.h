// Special tokens of a model folder for its chat template, read without its tokenizer.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

namespace troupe::engine::tokenizer {

/// The roles of special tokens, as the files of a tokenizer and chat templates name them.
constexpr std::array<std::string_view, 7> token_roles{
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

/// Text of each token by its name in a template: the roles, and the tokens that a tokenizer of
/// transformers names itself ("extra_special_tokens": {"image_token": ...}). A name that is absent
/// is undefined in the template, as in transformers.
using TemplateTokens = std::map<std::string, std::string>;

/// Reads tokenizer_config.json, then special_tokens_map.json; a token is a string or an object with
/// "content". Files that are missing or cannot be read are ignored: a template that needs a token
/// reports that itself.
TemplateTokens template_tokens(const std::string& folder);

}  // namespace troupe::engine::tokenizer
