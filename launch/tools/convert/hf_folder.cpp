#include "launch/tools/convert/hf_folder.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/checkpoint/save_parameters.h"

namespace troupe::launch::tools::convert {
namespace checkpoint = engine::checkpoint;

namespace {

using checkpoint::StoredType;
using Plan = checkpoint::SafetensorsWriter::Plan;

/// A tensor of the files, and how it is stored.
struct PlannedTensor {
  engine::models::StoredTensor tensor;
  Plan plan;
};
using Shard = std::vector<PlannedTensor>;

constexpr std::uint64_t shard_bytes = 5000000000;

std::uint64_t bytes_of(const Plan& plan) {
  std::int64_t count = 1;
  for (const auto axis : plan.shape) count *= axis;
  return static_cast<std::uint64_t>(count) * checkpoint::bits_of(plan.type) / 8;
}

Result<std::vector<Shard>> plan_shards(const engine::models::DecoderSpec& spec,
                                       const checkpoint::WeightSource& source,
                                       std::optional<StoredType> type) {
  std::vector<Shard> out(1);
  std::uint64_t filled = 0;
  for (auto& tensor : engine::models::stored_tensors(spec)) {
    const auto stored = checkpoint::type_of_joined(tensor, source);
    RETURN_IF_ERROR(stored);
    Plan plan{tensor.name, type.value_or(*stored), tensor.shape()};
    if (!out.back().empty() && filled + bytes_of(plan) > shard_bytes) {
      out.emplace_back();
      filled = 0;
    }
    filled += bytes_of(plan);
    out.back().push_back({std::move(tensor), std::move(plan)});
  }
  return out;
}

Result<> write_shard_file(const std::string& path, const Shard& shard,
                          const checkpoint::WeightSource& source) {
  std::vector<Plan> plans;
  std::unordered_map<std::string, const engine::models::StoredTensor*> by_name;
  for (const PlannedTensor& each : shard) {
    plans.push_back(each.plan);
    by_name.emplace(each.plan.name, &each.tensor);
  }
  auto writer = checkpoint::SafetensorsWriter::create(path, plans);
  RETURN_IF_ERROR(writer);
  std::vector<std::byte> buffer, converted;
  for (const auto& tensor : writer->tensors()) {
    const engine::models::StoredTensor& stored = *by_name.at(tensor.name);
    const auto from = checkpoint::type_of_joined(stored, source);
    RETURN_IF_ERROR(from);
    const auto bytes = checkpoint::read_joined(stored, source, buffer);
    RETURN_IF_ERROR(bytes);
    if (*from == tensor.type) {
      RETURN_IF_ERROR(writer->write_bytes(tensor.name, *bytes));
      continue;
    }
    converted.assign(bytes->begin(), bytes->end());
    RETURN_IF_ERROR(checkpoint::convert_type(converted, *from, tensor.type, tensor.name));
    RETURN_IF_ERROR(writer->write_bytes(tensor.name, converted));
  }
  return writer->finish();
}

Result<> add_shard(const HfOutput& output, const std::string& name, const Shard& shard,
                   const checkpoint::WeightSource& source) {
  const auto written = output.folder.add(
      name, [&](const std::string& path) { return write_shard_file(path, shard, source); });
  RETURN_IF_ERROR(written);
  if (*written) output.written(cat(output.folder.target(), '/', name));
  return {};
}

Result<> write_shards(const HfOutput& output, const std::vector<Shard>& shards,
                      const checkpoint::WeightSource& source) {
  if (shards.size() == 1)
    return add_shard(output, std::string(checkpoint::weights_file), shards[0], source);
  std::vector<std::pair<std::string, Json>> map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    for (const PlannedTensor& each : shards[i]) {
      map.emplace_back(each.plan.name, name);
      total += bytes_of(each.plan);
    }
    RETURN_IF_ERROR(add_shard(output, name, shards[i], source));
  }
  std::sort(map.begin(), map.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const Json index(Json::Object{{"metadata", Json::Object{{"total_size", total}}},
                                {"weight_map", std::move(map)}});
  RETURN_IF_ERROR(output.folder.add(std::string(checkpoint::index_file), index.dump(2) + "\n"));
  return {};
}

/// config.json, unchanged where the weights keep their type.
Result<std::string> config_text(const HfOutput& output) {
  if (!output.type) return output.config;
  auto config = parse_json(output.config, output.original + "/config.json");
  RETURN_IF_ERROR(config);
  const char* name = *output.type == StoredType::f32    ? "float32"
                     : *output.type == StoredType::bf16 ? "bfloat16"
                                                        : "float16";
  const bool has_dtype = config->find("dtype") != nullptr;  // transformers 5; 4 has "torch_dtype"
  if (has_dtype) config->set("dtype", name);
  if (!has_dtype || config->find("torch_dtype")) config->set("torch_dtype", name);
  return config->dump(2) + "\n";
}

}  // namespace

Result<> write_hf_folder(const engine::models::DecoderSpec& spec,
                         const checkpoint::WeightSource& source, const HfOutput& output) {
  const auto shards = plan_shards(spec, source, output.type);
  RETURN_IF_ERROR(shards);
  const auto config = config_text(output);
  RETURN_IF_ERROR(config);
  RETURN_IF_ERROR(write_shards(output, *shards, source));
  RETURN_IF_ERROR(output.folder.add("config.json", *config));
  const auto companions = checkpoint::companions_of(output.original);
  RETURN_IF_ERROR(companions);
  for (const checkpoint::Companion& file : *companions)
    RETURN_IF_ERROR(output.folder.add(file.name, file.content));
  return {};
}

}  // namespace troupe::launch::tools::convert
