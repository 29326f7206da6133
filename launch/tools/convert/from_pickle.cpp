#include "launch/tools/convert/from_pickle.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/pickle/torch_file.h"
#include "engine/checkpoint/result_folder.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/checkpoint/save_parameters.h"

namespace troupe::launch::tools::convert {
namespace checkpoint = engine::checkpoint;

namespace {

using checkpoint::PickledTensor;
using checkpoint::PickleKind;
using checkpoint::ResultFolder;
using checkpoint::TorchFile;

constexpr std::string_view bin_file = "pytorch_model.bin",
                           bin_index = "pytorch_model.bin.index.json";

struct Weights {
  std::vector<std::string> files;  ///< names of .bin files
  bool sharded = false;
};

// A plain name cannot refer to files outside the folder.
bool plain_bin_name(const std::string& name) {
  return name.ends_with(".bin") && name.size() <= 200 && name[0] != '.' &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

Result<Weights> find_weights(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(cat(folder, "/", bin_file), ignored))
    return Weights{{std::string(bin_file)}, false};
  const std::string path = cat(folder, "/", bin_index);
  const auto index = read_json(path);
  if (!index && index.error().code == Errc::not_found)
    return fail(Errc::not_found,
                cat(folder, ": expected ", bin_file, " or ", bin_index, ", found neither"));
  RETURN_IF_ERROR(index);
  const Json* map = index->find("weight_map");
  if (!map || !map->is_object() || map->object().empty())
    return fail(Errc::corrupt,
                cat(path, ": expected \"weight_map\", an object from tensor names to file names"));
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->object()) {
    if (!file.is_string() || !plain_bin_name(file.string()))
      return fail(Errc::corrupt, cat(path, ": tensor ", quote(tensor),
                                     ": expected the name of a .bin file of this folder, found ",
                                     quote(file.dump())));
    names.insert(file.string());
  }
  return Weights{{names.begin(), names.end()}, true};
}

/// "pytorch_model-00001-of-00002.bin" becomes "model-00001-of-00002.safetensors".
std::string safetensors_name(std::string name) {
  constexpr std::string_view prefix = "pytorch_";
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return name.substr(0, name.size() - 4) + ".safetensors";
}

using Tensors = std::unordered_map<std::string, const PickledTensor*>;

/// The tensors of a state dict.
Result<Tensors> tensors_of(const TorchFile& file) {
  if (file.root().kind != PickleKind::dict)
    return fail(Errc::corrupt, cat(file.path(), ": expected a dict of tensors, found ",
                                   to_string(file.root().kind), " ", quote(file.root().text)));
  Tensors out;
  const auto& items = file.root().items;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const auto &key = file.graph().at(items[i]), &value = file.graph().at(items[i + 1]);
    if (key.kind != PickleKind::text || value.kind != PickleKind::tensor)
      return fail(Errc::corrupt,
                  cat(file.path(), ": entry ", quote(key.text), ": expected a tensor, found ",
                      to_string(value.kind), value.text.empty() ? "" : cat(" ", quote(value.text)),
                      ", which is not constructed"));
    out[key.text] = &file.tensor(value);
  }
  if (out.empty()) return fail(Errc::corrupt, cat(file.path(), ": no tensors"));
  return out;
}

Result<> write_tensors(const TorchFile& file, const Tensors& tensors, const std::string& path) {
  std::vector<checkpoint::SafetensorsWriter::Plan> plans;
  for (const auto& [name, tensor] : tensors) plans.push_back({name, tensor->type, tensor->shape});
  auto writer = checkpoint::SafetensorsWriter::create(path, plans);
  RETURN_IF_ERROR(writer);
  std::vector<std::byte> buffer;
  for (const auto& planned : writer->tensors()) {
    const auto bytes = file.bytes(*tensors.at(planned.name), buffer);
    RETURN_IF_ERROR(bytes);
    RETURN_IF_ERROR(writer->write_bytes(planned.name, *bytes));
  }
  return writer->finish();
}

/// Converts one file; adds its tensors to the index.
Result<> convert_file(const std::string& from, ResultFolder& folder, const std::string& name,
                      Json::Object& map, std::uint64_t& total) {
  const auto file = TorchFile::open(from);
  RETURN_IF_ERROR(file);
  for (const std::string& foreign : file->graph().foreign)
    std::cerr << from << ": the class " << quote(foreign) << " is not constructed\n";
  const auto tensors = tensors_of(*file);
  RETURN_IF_ERROR(tensors);
  for (const auto& [tensor, view] : *tensors) {
    map.emplace_back(tensor, name);
    total += static_cast<std::uint64_t>(view->count()) * checkpoint::bits_of(view->type) / 8;
  }
  std::cerr << from << ": " << tensors->size() << " tensors -> " << folder.target() << '/' << name
            << "\n";
  RETURN_IF_ERROR(folder.add(
      name, [&](const std::string& path) { return write_tensors(*file, *tensors, path); }));
  return {};
}

Result<> write_index(ResultFolder& folder, Json::Object map, std::uint64_t total) {
  std::sort(map.begin(), map.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto again = std::adjacent_find(
      map.begin(), map.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (again != map.end())
    return fail(Errc::corrupt,
                cat(folder.target(), ": tensor ", quote(again->first), " is in two files"));
  const Json index(Json::Object{{"metadata", Json::Object{{"total_size", total}}},
                                {"weight_map", std::move(map)}});
  RETURN_IF_ERROR(folder.add(std::string(checkpoint::index_file), index.dump(2) + "\n"));
  return {};
}

/// config.json and the tokenizer's files.
Result<> copy_beside(const std::string& from, ResultFolder& folder) {
  const auto config = read_file(from + "/config.json");
  RETURN_IF_ERROR(config);
  RETURN_IF_ERROR(folder.add("config.json", *config));
  const auto companions = checkpoint::companions_of(from);
  RETURN_IF_ERROR(companions);
  for (const checkpoint::Companion& file : *companions)
    RETURN_IF_ERROR(folder.add(file.name, file.content));
  return {};
}

/// The names of the weights' files in the result.
std::vector<std::string> result_names(const Weights& weights) {
  std::vector<std::string> out{std::string(checkpoint::weights_file),
                               std::string(checkpoint::index_file)};
  for (const std::string& file : weights.files) out.push_back(safetensors_name(file));
  return out;
}

Result<ResultFolder> open_result(const FromPickleOptions& options, const Weights& weights) {
  std::vector<std::string> sources;
  for (const std::string& file : weights.files) sources.push_back(cat(options.folder, "/", file));
  auto stamps = checkpoint::stamps_of(sources);
  RETURN_IF_ERROR(stamps);
  const Json job(Json::Object{{"command", "convert --from-pickle"}, {"sources", *stamps}});
  if (!options.save_dir.empty()) return ResultFolder::create(options.save_dir, job);
  auto folder = ResultFolder::within(options.folder, job);
  RETURN_IF_ERROR(folder);
  for (const std::string& name : result_names(weights)) RETURN_IF_ERROR(folder->check_free(name));
  return folder;
}

}  // namespace

Result<> convert_pickles(const FromPickleOptions& options) {
  const auto weights = find_weights(options.folder);
  RETURN_IF_ERROR(weights);
  auto folder = open_result(options, *weights);
  RETURN_IF_ERROR(folder);
  if (folder->published()) return {};
  Json::Object map;
  std::uint64_t total = 0;
  for (const std::string& file : weights->files)
    RETURN_IF_ERROR(
        convert_file(cat(options.folder, "/", file), *folder, safetensors_name(file), map, total));
  if (weights->sharded) RETURN_IF_ERROR(write_index(*folder, std::move(map), total));
  if (!options.save_dir.empty()) RETURN_IF_ERROR(copy_beside(options.folder, *folder));
  return folder->publish();
}

}  // namespace troupe::launch::tools::convert
