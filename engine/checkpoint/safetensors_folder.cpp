#include "engine/checkpoint/safetensors_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::size_t index_bytes = 64u << 20;
constexpr std::size_t shard_limit = 4096;

// A plain name cannot refer to files outside the folder.
bool plain_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 255 && name[0] != '.' && name[0] != '-' &&
         name.ends_with(".safetensors") && std::all_of(name.begin(), name.end(), good);
}

using ShardsOfIndex =
    std::map<std::string, std::vector<std::string>>;  // shard's name -> tensors listed for it

Result<ShardsOfIndex> read_index(const std::string& path) {
  const auto json = read_json(path, {.depth = 8, .bytes = index_bytes});
  RETURN_IF_ERROR(json);
  const Json* map = json->find("weight_map");
  if (!map || !map->is_object() || map->object().empty())
    return fail(Errc::corrupt,
                cat(path, ": expected \"weight_map\", an object from tensor names to file names"));
  ShardsOfIndex shards;
  for (const auto& [tensor, shard] : map->object()) {
    if (!shard.is_string() || !plain_name(shard.string()))
      return fail(Errc::corrupt,
                  cat(path, ": tensor ", quote(tensor),
                      ": expected the plain name of a .safetensors file of this folder, found ",
                      quote(shard.dump())));
    shards[shard.string()].push_back(tensor);
    if (shards.size() > shard_limit)
      return fail(Errc::unsupported, cat(path, ": more than ", shard_limit, " shards"));
  }
  return shards;
}

// The shard and the index must list the same tensors.
Result<> check_listed(const SafetensorsFile& file, std::vector<std::string>& listed,
                      const std::string& index) {
  for (const auto& name : listed)
    if (!file.find(name))
      return fail(Errc::corrupt, cat(file.path(), ": no tensor ", quote(name), ", which ", index,
                                     " says is in this file"));
  std::sort(listed.begin(), listed.end());
  for (const auto& tensor : file.tensors())
    if (!std::binary_search(listed.begin(), listed.end(), tensor.name))
      return fail(Errc::corrupt, cat(file.path(), ": tensor ", quote(tensor.name),
                                     " is not listed for this file in ", index));
  return {};
}

tl::unexpected<Error> no_weights(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    return fail(Errc::not_found, cat(folder, ": no such folder"));
  const bool pickled = std::filesystem::exists(folder + "/pytorch_model.bin", ignored) ||
                       std::filesystem::exists(folder + "/pytorch_model.bin.index.json", ignored);
  return fail(
      Errc::not_found,
      cat(folder, ": expected ", weights_file, " or ", index_file, ", found neither",
          pickled ? cat("; pytorch_model.bin is a pickle, which only `troupe convert` reads. "
                        "Rewrite it as safetensors: troupe convert --from-pickle ",
                        folder, " (docs/conversion.md)")
                  : ""));
}

}  // namespace

Result<SafetensorsFolder> SafetensorsFolder::open(const std::string& folder) {
  SafetensorsFolder out;
  auto single = SafetensorsFile::open(cat(folder, "/", weights_file));
  if (!single && single.error().code == Errc::not_found) return open_shards(folder);
  RETURN_IF_ERROR(single);
  out.files_.push_back(std::move(*single));
  return out;
}

Result<SafetensorsFolder> SafetensorsFolder::open_shards(const std::string& folder) {
  const std::string index = cat(folder, "/", index_file);
  auto shards = read_index(index);
  if (!shards && shards.error().code == Errc::not_found) return no_weights(folder);
  RETURN_IF_ERROR(shards);
  SafetensorsFolder out;
  for (auto& [name, tensors] : *shards) {
    auto file = SafetensorsFile::open(cat(folder, "/", name));
    if (!file)
      return fail(file.error().code, cat(file.error().what, " (a shard that ", index, " names)"));
    RETURN_IF_ERROR(check_listed(*file, tensors, index));
    out.files_.push_back(std::move(*file));
  }
  return out;
}

std::optional<SafetensorsFolder::Location> SafetensorsFolder::find(std::string_view name) const {
  for (const auto& file : files_)
    if (const StoredTensor* tensor = file.find(name)) return Location{&file, tensor};
  return std::nullopt;
}

std::vector<SafetensorsFolder::Location> SafetensorsFolder::all() const {
  std::vector<Location> out;
  for (const auto& file : files_)
    for (const auto& tensor : file.tensors()) out.push_back({&file, &tensor});
  return out;
}

const std::string* SafetensorsFolder::metadata(std::string_view key) const {
  for (const auto& file : files_)
    if (const std::string* value = file.metadata(key)) return value;
  return nullptr;
}

}  // namespace troupe::engine::checkpoint
