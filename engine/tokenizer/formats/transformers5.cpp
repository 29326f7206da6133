#include "engine/tokenizer/formats/transformers5.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/text/text.h"
#include "engine/tokenizer/formats/slow_files.h"

namespace troupe::engine::tokenizer {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view llama_class = "LlamaTokenizer", space_mark = "\u2581";

// Architectures whose tokenizer.json is read as it is, whatever class the folder names
// (models/auto/tokenization_auto.py: TOKENIZER_MAPPING_NAMES with TokenizersBackend, and
// MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS).
constexpr std::string_view types_with_own_file[] = {
    "arctic",      "flex_olmo",     "glm",       "glm4",       "glm4_moe",    "gpt_bigcode",
    "granite",     "granitemoe",    "internlm2", "internlm3",  "iquestcoder", "jamba",
    "kimi_linear", "mimo_v2_flash", "minicpm3",  "minimax_m2", "ministral",   "ministral3",
    "mistral",     "mistral3",      "mixtral",   "nemotron",   "olmo2",       "olmo3",
    "olmo_hybrid", "persimmon",     "phi3",      "phi3_v",     "phimoe",      "pixtral",
    "qwen2",       "stablelm"};

bool has_text(const Json& value, std::string_view text) {
  if (value.is_string()) return value.string() == text;
  if (value.is_array())
    return std::ranges::any_of(value.array(),
                               [&](const Json& item) { return has_text(item, text); });
  if (!value.is_object()) return false;
  return std::ranges::any_of(value.object(),
                             [&](const auto& member) { return has_text(member.second, text); });
}

// A byte-level tokenizer (Llama 3) is read as it is.
bool is_byte_level(const Json& file) {
  for (const char* stage : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
    if (const Json* part = file.find(stage); part && has_text(*part, "ByteLevel")) return true;
  return false;
}

// Code of the folder's own reads it.
bool names_own_code(const Json& tokenizer_config) {
  const Json* map = tokenizer_config.find("auto_map");
  return map && (map->is_array() || map->find("AutoTokenizer"));
}

std::string class_of(const Json& tokenizer_config, const Json& model_config) {
  const std::string name = tokenizer_class_of(tokenizer_config);
  return name.empty() ? tokenizer_class_of(model_config) : name;
}

Json decoder_of(bool prefix) {
  Json::Array stages{
      Json::Object{
          {"type", "Replace"}, {"pattern", Json::Object{{"String", space_mark}}}, {"content", " "}},
      Json::Object{{"type", "ByteFallback"}}, Json::Object{{"type", "Fuse"}}};
  if (prefix)
    stages.push_back(Json::Object{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return Json::Object{{"type", "Sequence"}, {"decoders", std::move(stages)}};
}

Result<Json> read_if_there(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Json();
  return read_json(path.string());
}

}  // namespace

bool is_llama_tokenizer(const Json& file, const Json& tokenizer_config, const Json& model_config) {
  if (class_of(tokenizer_config, model_config) != llama_class || names_own_code(tokenizer_config))
    return false;
  const Json* type = model_config.find("model_type");
  const bool reads_file =
      type && type->is_string() &&
      std::ranges::find(types_with_own_file, type->string()) != std::end(types_with_own_file);
  return !reads_file && !is_byte_level(file);
}

Result<Json> as_llama_tokenizer(Json file, const Json& tokenizer_config, std::string_view where) {
  const Json* model = file.find("model");
  const Json* type = model ? model->find("type") : nullptr;
  if (!type || *type != Json("BPE"))
    return fail(Errc::unsupported,
                cat(where,
                    ": transformers 5 builds a BPE tokenizer from the vocabulary of this "
                    "class, and the file's model is ",
                    type && type->is_string() ? quote(type->string()) : "of no named type",
                    "; use the ids of the file"));
  Json bpe = *model;
  bpe.set("dropout", Json()).set("unk_token", Json()).set("fuse_unk", true);
  bpe.set("byte_fallback", true).set("ignore_merges", false);
  bpe.set("continuing_subword_prefix", Json()).set("end_of_word_suffix", Json());
  const bool prefix = flag_of(tokenizer_config, "add_prefix_space", true),
             everywhere = flag_of(tokenizer_config, "legacy", false);
  const char* scheme = !prefix ? "never" : everywhere ? "always" : "first";
  file.set("normalizer", Json());
  file.set("pre_tokenizer", Json::Object{{"type", "Metaspace"},
                                         {"replacement", space_mark},
                                         {"prepend_scheme", scheme},
                                         {"split", false}});
  file.set("decoder", decoder_of(prefix));
  file.set("model", std::move(bpe));
  return file;
}

Result<std::string> rebuilt_tokenizer_file(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  auto file = read_if_there(path), config = read_if_there(folder + "/tokenizer_config.json"),
       model = read_if_there(folder + "/config.json");
  for (const auto* each : {&file, &config, &model}) RETURN_IF_ERROR(*each);
  if (file->is_null() || !is_llama_tokenizer(*file, *config, *model)) return "";
  const Json before = *file;
  auto rebuilt = as_llama_tokenizer(std::move(*file), *config, path);
  RETURN_IF_ERROR(rebuilt);
  if (*rebuilt == before) return "";
  return rebuilt->dump(2) + "\n";
}

}  // namespace troupe::engine::tokenizer
