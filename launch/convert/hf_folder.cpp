#include "launch/convert/hf_folder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <unordered_map>

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/checkpoint/output_file.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/checkpoint/save_parameters.h"

namespace troupe::launch {
namespace checkpoint = engine::checkpoint;

namespace {

using checkpoint::StoredType;
using Plan = checkpoint::SafetensorsWriter::Plan;

constexpr std::uint64_t shard_bytes = 5000000000;

std::uint64_t bytes_of(const Plan& plan) {
  std::int64_t count = 1;
  for (const auto axis : plan.shape) count *= axis;
  return static_cast<std::uint64_t>(count) * checkpoint::bits_of(plan.type) / 8;
}

Result<std::vector<std::vector<Plan>>> plan_shards(const engine::models::DecoderSpec& spec,
                                                   const checkpoint::WeightSource& source,
                                                   std::optional<StoredType> type) {
  std::vector<std::vector<Plan>> out(1);
  std::uint64_t filled = 0;
  for (const auto& parameter : engine::models::parameter_list(spec)) {
    const auto stored = source.type(parameter.name);
    RETURN_IF_ERROR(stored);
    Plan plan{.name = parameter.name, .type = type.value_or(*stored)};
    for (int axis = 0; axis < parameter.shape.rank(); ++axis)
      plan.shape.push_back(parameter.shape[axis]);
    if (!out.back().empty() && filled + bytes_of(plan) > shard_bytes) {
      out.emplace_back();
      filled = 0;
    }
    filled += bytes_of(plan);
    out.back().push_back(std::move(plan));
  }
  return out;
}

Result<> write_shard_file(const std::string& path, const std::vector<Plan>& plans,
                          const checkpoint::WeightSource& source) {
  auto writer = checkpoint::SafetensorsWriter::create(path, plans);
  RETURN_IF_ERROR(writer);
  std::vector<std::byte> buffer, converted;
  for (const auto& tensor : writer->tensors()) {
    const auto from = source.type(tensor.name);
    RETURN_IF_ERROR(from);
    const auto bytes = source.read(tensor.name, buffer);
    RETURN_IF_ERROR(bytes);
    if (*from == tensor.type) {
      RETURN_IF_ERROR(writer->write_bytes(tensor.name, *bytes));
      continue;
    }
    converted.assign(bytes->begin(), bytes->end());
    RETURN_IF_ERROR(checkpoint::convert_type(converted, *from, tensor.type, tensor.name));
    RETURN_IF_ERROR(writer->write_bytes(tensor.name, converted));
  }
  std::cerr << "wrote " << path << "\n";
  return writer->finish();
}

Result<> write_shards(const std::string& folder, const std::vector<std::vector<Plan>>& shards,
                      const checkpoint::WeightSource& source) {
  if (shards.size() == 1)
    return write_shard_file(cat(folder, "/", checkpoint::weights_file), shards[0], source);
  std::vector<std::pair<std::string, Json>> map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    for (const Plan& plan : shards[i]) {
      map.emplace_back(plan.name, name);
      total += bytes_of(plan);
    }
    RETURN_IF_ERROR(write_shard_file(cat(folder, "/", name), shards[i], source));
  }
  std::sort(map.begin(), map.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const Json index(Json::Object{{"metadata", Json::Object{{"total_size", total}}},
                                {"weight_map", std::move(map)}});
  return checkpoint::write_new_file(cat(folder, "/", checkpoint::index_file), index.dump(2) + "\n");
}

/// config.json of the original, unchanged where the weights keep their type.
Result<> write_config(const std::string& folder, const std::string& original,
                      std::optional<StoredType> type) {
  const std::string path = original + "/config.json";
  const auto text = read_file(path);
  RETURN_IF_ERROR(text);
  if (!type) return checkpoint::write_new_file(folder + "/config.json", *text);
  auto config = parse_json(*text, path);
  RETURN_IF_ERROR(config);
  const char* name = *type == StoredType::f32    ? "float32"
                     : *type == StoredType::bf16 ? "bfloat16"
                                                 : "float16";
  const bool has_dtype = config->find("dtype") != nullptr;  // transformers 5; 4 has "torch_dtype"
  if (has_dtype) config->set("dtype", name);
  if (!has_dtype || config->find("torch_dtype")) config->set("torch_dtype", name);
  return checkpoint::write_new_file(folder + "/config.json", config->dump(2) + "\n");
}

}  // namespace

Result<> write_hf_folder(const std::string& folder, const std::string& original,
                         const engine::models::DecoderSpec& spec,
                         const checkpoint::WeightSource& source, std::optional<StoredType> type) {
  std::error_code failed;
  if (std::filesystem::exists(folder, failed))
    return fail(Errc::usage, cat(folder, " exists; remove it or rename it"));
  const auto shards = plan_shards(spec, source, type);
  RETURN_IF_ERROR(shards);
  const std::string partial = folder + ".partial";
  std::filesystem::remove_all(partial, failed);
  std::filesystem::create_directory(partial, failed);
  if (failed) return fail(Errc::io, cat(partial, ": ", failed.message()));
  RETURN_IF_ERROR(write_shards(partial, *shards, source));
  RETURN_IF_ERROR(write_config(partial, original, type));
  RETURN_IF_ERROR(checkpoint::copy_companions(partial, original));
  RETURN_IF_ERROR(sync_directory(partial));
  std::filesystem::rename(partial, folder, failed);
  if (failed) return fail(Errc::io, cat(folder, ": ", failed.message()));
  return sync_directory(original);
}

}  // namespace troupe::launch
