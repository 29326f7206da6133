#include "engine/checkpoint/not_a_model.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {

namespace fs = std::filesystem;

bool is_hub_name(const std::string& path) {
  const auto slash = path.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == path.size() || path[0] == '.')
    return false;
  const std::string first = path.substr(0, slash);
  constexpr std::string_view folders[] = {"models", "model",   "checkpoints", "runs",
                                          "output", "outputs", "data"};
  std::error_code ignored;
  if (fs::exists(first, ignored) || std::ranges::find(folders, first) != std::end(folders))
    return false;  // a local path
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  };
  return std::ranges::all_of(path, allowed) && std::ranges::count(path, '/') == 1;
}

std::string named_base(const std::string& folder) {
  const auto config = read_json(folder + "/adapter_config.json", {.bytes = 16u << 20});
  if (!config) return "";
  const Json* base = config->find("base_model_name_or_path");
  return base && base->is_string() ? base->string() : "";
}

namespace {

/// A name as it is typed in a shell: quoted only where it has other than plain characters.
std::string shown(const std::string& name) {
  const bool plain = std::ranges::all_of(name, [](char c) {
    return c > ' ' && c < 0x7F && c != '"' && c != '\'' && c != '\\' && c != '$' && c != '`';
  });
  return plain ? name : quote(name, 400);
}

}  // namespace

std::string why_not_a_model(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path + "/adapter_config.json", ignored)) {
    const std::string named = shown(named_base(path)), base = named.empty() ? "BASE" : named;
    return cat("is a LoRA adapter of ", named.empty() ? "an unnamed base model" : named,
               ", not a model: use the base model with the adapter (--model ", base, " --adapter ",
               path, "), or merge them first (troupe merge --model ", base, " --adapter ", path,
               " --output NEW)");
  }
  if (fs::is_directory(path, ignored)) {
    std::vector<std::string> models;
    for (const char* name : {"latest", "best"})
      if (fs::exists(cat(path, '/', name, "/config.json"), ignored))
        models.push_back(cat(path, '/', name));
    return cat("has no config.json, so it is not a model directory",
               models.empty() ? "" : "; it is the folder of a run: name " + join(models, " or "));
  }
  if (fs::exists(path, ignored)) return "is a file; a Hugging Face model directory is expected";
  if (is_hub_name(path)) {
    return cat(
        "no such directory; models are not downloaded automatically. If this is a model "
        "on Hugging Face, download it first: hf download ",
        path, " --local-dir ", path.substr(path.find('/') + 1), " (docs/models.md)");
  }
  return "no such directory; a Hugging Face model directory is expected (docs/models.md: download)";
}

}  // namespace troupe::engine::checkpoint
