#include "launch/commands/template_tokens.h"

#include <filesystem>

#include "engine/base/json.h"

namespace troupe::launch {

namespace {

void take(const Json& file, const char* key, std::optional<std::string>& to) {
  const Json* token = file.find(key);
  if (token && token->is_object()) token = token->find("content");
  if (!to && token && token->is_string()) to = token->string();
}

}  // namespace

TemplateTokens template_tokens(const std::string& folder) {
  TemplateTokens tokens;
  const std::filesystem::path path(folder);
  const auto base = std::filesystem::is_regular_file(path) ? path.parent_path() : path;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto file = read_json((base / name).string());
    if (!file) continue;
    take(*file, "bos_token", tokens.bos);
    take(*file, "eos_token", tokens.eos);
  }
  return tokens;
}

}  // namespace troupe::launch
