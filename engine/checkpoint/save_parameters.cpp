#include "engine/checkpoint/save_parameters.h"

#include <algorithm>
#include <cstdio>

#include "engine/base/errors/check.h"
#include "engine/base/files/file_names.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/stored_map.h"
#include "engine/models/head_config.h"
#include "engine/models/overrides.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::size_t companion_bytes = std::size_t{1} << 30;
constexpr std::string_view chat_template_file = "chat_template.jinja",
                           tokenizer_file = "tokenizer.json";
constexpr std::string_view companions[] = {"generation_config.json",
                                           tokenizer_file,
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           chat_template_file,
                                           "chat_template.json",
                                           "tokenizer.model",
                                           "qwen.tiktoken",
                                           "vocab.json",
                                           "merges.txt",
                                           "vocab.txt"};

using Tensors = std::vector<models::StoredTensor>;
using Shard = std::vector<std::size_t>;  // indices into Tensors

std::size_t bytes_of(const models::StoredTensor& tensor, StoredType type) {
  return static_cast<std::size_t>(tensor.row_count() * tensor.columns) * bits_of(type) / 8;
}

std::vector<Shard> split(const Tensors& stored, const SaveOptions& options) {
  std::vector<Shard> shards(1);
  std::size_t filled = 0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const std::size_t bytes = bytes_of(stored[i], options.type);
    if (!shards.back().empty() && filled + bytes > options.shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(i);
    filled += bytes;
  }
  return shards;
}

std::string shard_name(std::size_t number, std::size_t of) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, of);
  return name;
}

std::vector<TensorSource> sources_of(const Tensors& stored, const Shard& shard, std::size_t arena) {
  std::vector<TensorSource> sources;
  for (const auto index : shard) sources.push_back({stored[index], arena});
  return sources;
}

Json index_of(const Tensors& stored, const std::vector<Shard>& shards, StoredType type) {
  std::vector<std::pair<std::string, std::string>> map;
  std::size_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (const auto index : shards[i]) {
      map.emplace_back(stored[index].name, shard_name(i + 1, shards.size()));
      total += bytes_of(stored[index], type);
    }
  std::sort(map.begin(), map.end());
  Json::Object weight_map;
  for (auto& [tensor, shard] : map) weight_map.emplace_back(tensor, shard);
  return Json::Object{{"metadata", Json::Object{{"total_size", static_cast<std::int64_t>(total)}}},
                      {"weight_map", std::move(weight_map)}};
}

// The files beside the tensors', by rank 0.
Result<> write_beside(const std::string& folder, const Json& index, const Json& config,
                      const SaveOptions& options) {
  if (!index.is_null())
    RETURN_IF_ERROR(write_new_file(cat(folder, "/", index_file), index.dump(2) + "\n"));
  if (!options.source.empty()) {
    RETURN_IF_ERROR(write_new_file(cat(folder, "/config.json"), config.dump(2) + "\n"));
    RETURN_IF_ERROR(copy_companions(folder, options.source, options.texts));
  }
  return sync_directory(folder);
}

// The config.json must match the stored weights, or other tools would load them in another
// precision or untie them.
Result<Json> config_of(const nn::Parameters& parameters, const SaveOptions& options) {
  auto config = read_json(cat(options.source, "/config.json"));
  if (!config) return config;
  if (!config->is_object())
    return fail(Errc::bad_input, cat(options.source, "/config.json: expected an object, found ",
                                     config->type_name()));
  config = models::with_overrides(std::move(*config), options.overrides,
                                  cat(options.source, "/config.json"));
  RETURN_IF_ERROR(config);
  const char* dtype = options.type == StoredType::f32    ? "float32"
                      : options.type == StoredType::bf16 ? "bfloat16"
                                                         : "float16";
  const bool has_dtype = config->find("dtype") != nullptr;  // transformers 5; 4 has "torch_dtype"
  if (has_dtype) config->set("dtype", dtype);
  if (!has_dtype || config->find("torch_dtype")) config->set("torch_dtype", dtype);
  config->set("tie_word_embeddings", options.tied);
  if (const nn::Parameter* score = parameters.find("score.weight"))
    models::write_head(*config, static_cast<int>(score->logical_shape()[0]),
                       parameters.find("score.bias") != nullptr);
  return config;
}

}  // namespace

Result<std::vector<Companion>> companions_of(const std::string& source,
                                             const CompanionTexts& texts) {
  std::vector<Companion> out;
  const bool own_template = texts.chat_template.empty();
  if (!own_template) out.push_back({std::string(chat_template_file), texts.chat_template});
  if (!texts.tokenizer.empty()) out.push_back({std::string(tokenizer_file), texts.tokenizer});
  std::vector<std::string> names(std::begin(companions), std::end(companions));
  if (own_template)
    for (const auto& name : file_names(cat(source, "/", additional_templates_folder), ".jinja"))
      names.push_back(cat(additional_templates_folder, "/", name));
  for (const auto& name : names) {
    if (!own_template && name.starts_with("chat_template.")) continue;
    if (!texts.tokenizer.empty() && name == tokenizer_file) continue;
    auto content = read_file(cat(source, "/", name), companion_bytes);
    if (!content && content.error().code == Errc::not_found) continue;
    RETURN_IF_ERROR(content);
    out.push_back({name, std::move(*content)});
  }
  return out;
}

Result<> copy_companions(const std::string& folder, const std::string& source,
                         const CompanionTexts& texts) {
  const auto files = companions_of(source, texts);
  RETURN_IF_ERROR(files);
  for (const Companion& file : *files) {
    if (const auto slash = file.name.find('/'); slash != std::string::npos)
      RETURN_IF_ERROR(create_directory_durably(cat(folder, "/", file.name.substr(0, slash))));
    RETURN_IF_ERROR(write_new_file(cat(folder, "/", file.name), file.content));
  }
  return {};
}

Result<> save_parameters(const std::string& folder, const nn::Parameters& parameters,
                         const SaveOptions& options) {
  TensorParts tensors(parameters, {parameters.values()});
  return save_parameters(folder, tensors, options);
}

Result<> save_parameters(const std::string& folder, TensorParts& tensors,
                         const SaveOptions& options) {
  check(options.type == StoredType::f32 || options.type == StoredType::bf16 ||
            options.type == StoredType::f16,
        "save_parameters: weights are stored as F32, BF16 or F16");
  auto config =
      options.source.empty() ? Result<Json>(Json()) : config_of(tensors.parameters(), options);
  const auto stored =
      config ? stored_map(*config, cat(options.source, "/config.json"), tensors.parameters())
             : Result<Tensors>(fail(config));
  RETURN_IF_ERROR(tensors.agree(stored ? Result<>() : Result<>(fail(stored)), folder));
  const auto shards = split(*stored, options);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? std::string(weights_file) : shard_name(i + 1, shards.size());
    RETURN_IF_ERROR(tensors.write(cat(folder, "/", name), options.type,
                                  sources_of(*stored, shards[i], options.arena)));
  }
  const Json index = shards.size() == 1 ? Json() : index_of(*stored, shards, options.type);
  return tensors.agree(
      tensors.is_root() ? write_beside(folder, index, *config, options) : Result<>(), folder);
}

}  // namespace troupe::engine::checkpoint
