#include "engine/checkpoint/save_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/checkpoint/stored_map.h"
#include "engine/models/head_config.h"
#include "engine/models/overrides.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::size_t companion_bytes = std::size_t{1} << 30;
constexpr std::string_view chat_template_file = "chat_template.jinja";
constexpr std::string_view companions[] = {"generation_config.json",
                                           "tokenizer.json",
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

// Values of a stored tensor, from the parameters that it holds.
std::vector<float> values_of(const models::StoredTensor& stored, nn::LogicalTensors& tensors,
                             std::size_t arena) {
  const auto& all = tensors.parameters().all();
  const auto read = [&](const std::string& name) {
    return tensors.read(arena,
                        static_cast<std::size_t>(tensors.parameters().find(name) - all.data()));
  };
  if (stored.plain()) return read(stored.rows.front().parameter);
  std::unordered_map<std::string, std::vector<float>> parts;
  return models::assemble_stored(stored, [&](const std::string& name) {
    auto& part = parts[name];
    if (part.empty()) part = read(name);
    return part.data();
  });
}

/// Errc::usage for a value that F16 would turn into infinity.
Result<> check_range(StoredType type, const std::string& name, std::span<const float> values) {
  constexpr float limit = 65520;  // rounds to 2^16
  if (type != StoredType::f16) return {};
  const auto large =
      std::ranges::find_if(values, [](float value) { return std::abs(value) >= limit; });
  if (large == values.end()) return {};
  return fail(Errc::usage, cat("tensor ", quote(name), " has the value ", double{*large},
                               ", which F16 cannot store; use bf16 or f32"));
}

std::string shard_name(std::size_t number, std::size_t of) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, of);
  return name;
}

Result<> write_shard(const std::string& path, const Tensors& stored, const Shard& shard,
                     nn::LogicalTensors& tensors, const SaveOptions& options) {
  std::vector<SafetensorsWriter::Plan> plans;
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (const auto index : shard) {
    plans.push_back({stored[index].name, options.type, stored[index].shape()});
    by_name.emplace(stored[index].name, index);
  }
  auto writer = SafetensorsWriter::create(path, plans);
  RETURN_IF_ERROR(writer);
  for (const auto& tensor : writer->tensors()) {
    const auto values = values_of(stored[by_name.at(tensor.name)], tensors, options.arena);
    RETURN_IF_ERROR(check_range(options.type, tensor.name, values));
    RETURN_IF_ERROR(writer->write(tensor.name, values));
  }
  return writer->finish();
}

Result<> write_weights(const std::string& folder, const Tensors& stored,
                       nn::LogicalTensors& tensors, const SaveOptions& options) {
  const auto shards = split(stored, options);
  if (shards.size() == 1)
    return write_shard(cat(folder, "/", weights_file), stored, shards[0], tensors, options);
  std::vector<std::pair<std::string, std::string>> map;
  std::size_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i + 1, shards.size());
    for (const auto index : shards[i]) {
      map.emplace_back(stored[index].name, name);
      total += bytes_of(stored[index], options.type);
    }
    RETURN_IF_ERROR(write_shard(cat(folder, "/", name), stored, shards[i], tensors, options));
  }
  std::sort(map.begin(), map.end());
  Json::Object weight_map;
  for (auto& [tensor, shard] : map) weight_map.emplace_back(tensor, shard);
  const Json index(
      Json::Object{{"metadata", Json::Object{{"total_size", static_cast<std::int64_t>(total)}}},
                   {"weight_map", std::move(weight_map)}});
  return write_new_file(cat(folder, "/", index_file), index.dump(2) + "\n");
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

Result<> copy_companions(const std::string& folder, const std::string& source,
                         const std::string& chat_template) {
  if (!chat_template.empty())
    RETURN_IF_ERROR(write_new_file(cat(folder, "/", chat_template_file), chat_template));
  for (const auto name : companions) {
    if (!chat_template.empty() && name.starts_with("chat_template.")) continue;
    const auto content = read_file(cat(source, "/", name), companion_bytes);
    if (!content && content.error().code == Errc::not_found) continue;
    RETURN_IF_ERROR(content);
    RETURN_IF_ERROR(write_new_file(cat(folder, "/", name), *content));
  }
  return {};
}

Result<> save_parameters(const std::string& folder, const nn::Parameters& parameters,
                         const SaveOptions& options) {
  nn::LogicalTensors tensors(parameters, {parameters.values()}, nullptr);
  return save_parameters(folder, tensors, options);
}

Result<> save_parameters(const std::string& folder, nn::LogicalTensors& tensors,
                         const SaveOptions& options) {
  check(options.type == StoredType::f32 || options.type == StoredType::bf16 ||
            options.type == StoredType::f16,
        "save_parameters: weights are stored as F32, BF16 or F16");
  Json config;
  if (!options.source.empty()) {
    auto made = config_of(tensors.parameters(), options);
    RETURN_IF_ERROR(made);
    config = std::move(*made);
  }
  const auto stored = stored_map(config, cat(options.source, "/config.json"), tensors.parameters());
  RETURN_IF_ERROR(stored);
  RETURN_IF_ERROR(write_weights(folder, *stored, tensors, options));
  if (!options.source.empty()) {
    RETURN_IF_ERROR(write_new_file(cat(folder, "/config.json"), config.dump(2) + "\n"));
    RETURN_IF_ERROR(copy_companions(folder, options.source, options.chat_template));
  }
  return sync_directory(folder);
}

}  // namespace troupe::engine::checkpoint
