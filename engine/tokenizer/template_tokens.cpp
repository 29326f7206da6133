#include "engine/tokenizer/template_tokens.h"

#include <filesystem>

#include "engine/base/json/json.h"

namespace troupe::engine::tokenizer {
namespace {

void take(const Json* token, std::string_view name, TemplateTokens& to) {
  if (token && token->is_object()) token = token->find("content");
  if (token && token->is_string()) to.emplace(name, token->string());
}

}  // namespace

TemplateTokens template_tokens(const std::string& folder) {
  TemplateTokens tokens;
  const std::filesystem::path path(folder);
  const auto base = std::filesystem::is_regular_file(path) ? path.parent_path() : path;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto file = read_json((base / name).string());
    if (!file) continue;
    for (const auto role : token_roles) take(file->find(role), role, tokens);
    for (const char* key : {"extra_special_tokens", "model_specific_special_tokens"})
      if (const Json* named = file->find(key); named && named->is_object())
        for (const auto& [role, token] : named->object()) take(&token, role, tokens);
  }
  return tokens;
}

}  // namespace troupe::engine::tokenizer
