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
#include "launch/convert/progress.h"

namespace troupe::launch {
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
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return {};  // of the interrupted conversion
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
  std::cerr << "wrote " << path << "\n";
  return writer->finish();
}

Result<> write_shards(const std::string& folder, const std::vector<Shard>& shards,
                      const checkpoint::WeightSource& source) {
  if (shards.size() == 1)
    return write_shard_file(cat(folder, "/", checkpoint::weights_file), shards[0], source);
  std::vector<std::pair<std::string, Json>> map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    for (const PlannedTensor& each : shards[i]) {
      map.emplace_back(each.plan.name, name);
      total += bytes_of(each.plan);
    }
    RETURN_IF_ERROR(write_shard_file(cat(folder, "/", name), shards[i], source));
  }
  std::sort(map.begin(), map.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const Json index(Json::Object{{"metadata", Json::Object{{"total_size", total}}},
                                {"weight_map", std::move(map)}});
  return checkpoint::write_new_file(cat(folder, "/", checkpoint::index_file), index.dump(2) + "\n");
}

/// config.json, unchanged where the weights keep their type.
Result<> write_config(const std::string& folder, const std::string& text,
                      std::optional<StoredType> type) {
  if (!type) return checkpoint::write_new_file(folder + "/config.json", text);
  auto config = parse_json(text, folder + "/config.json");
  RETURN_IF_ERROR(config);
  const char* name = *type == StoredType::f32    ? "float32"
                     : *type == StoredType::bf16 ? "bfloat16"
                                                 : "float16";
  const bool has_dtype = config->find("dtype") != nullptr;  // transformers 5; 4 has "torch_dtype"
  if (has_dtype) config->set("dtype", name);
  if (!has_dtype || config->find("torch_dtype")) config->set("torch_dtype", name);
  return checkpoint::write_new_file(folder + "/config.json", config->dump(2) + "\n");
}

/// The folder of an interrupted conversion with its complete shards, or an empty one.
Result<> prepare(const std::string& partial, const Json& conversion) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::create_directory(partial, failed);
  if (failed) return fail(Errc::io, cat(partial, ": ", failed.message()));
  const std::string progress = cat(partial, '/', progress_file);
  const bool same = is_record_of(progress, conversion);
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(partial, failed), end; !failed && it != end; it.increment(failed))
    if (it->path() != progress && (!same || it->path().extension() != ".safetensors"))
      stale.push_back(it->path());
  for (const fs::path& path : stale)
    if (!failed) fs::remove_all(path, failed);
  if (failed) return fail(Errc::io, cat(partial, ": ", failed.message()));
  if (same) return {};
  RETURN_IF_ERROR(sync_directory(partial));
  return write_record(progress, conversion);
}

}  // namespace

Result<> write_hf_folder(const engine::models::DecoderSpec& spec,
                         const checkpoint::WeightSource& source, const HfOutput& output) {
  std::error_code failed;
  if (std::filesystem::exists(output.folder, failed))
    return fail(Errc::usage, cat(output.folder, " exists; remove it or rename it"));
  const auto shards = plan_shards(spec, source, output.type);
  RETURN_IF_ERROR(shards);
  const std::string partial = output.folder + ".partial";
  RETURN_IF_ERROR(prepare(partial, output.conversion));
  RETURN_IF_ERROR(write_shards(partial, *shards, source));
  RETURN_IF_ERROR(write_config(partial, output.config, output.type));
  RETURN_IF_ERROR(checkpoint::copy_companions(partial, output.original));
  std::filesystem::remove(cat(partial, '/', progress_file), failed);
  RETURN_IF_ERROR(sync_directory(partial));
  std::filesystem::rename(partial, output.folder, failed);
  if (failed) return fail(Errc::io, cat(output.folder, ": ", failed.message()));
  return sync_directory(output.original);
}

}  // namespace troupe::launch
