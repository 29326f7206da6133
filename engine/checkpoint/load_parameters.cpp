#include "engine/checkpoint/load_parameters.h"

#include <filesystem>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/stored_map.h"
#include "engine/checkpoint/tensor_names.h"
#include "engine/nn/logical_tensors.h"

namespace troupe::engine::checkpoint {
namespace {

using Place = SafetensorsFolder::Place;

/// A tensor of the files, where it lies.
struct Found {
  models::StoredTensor tensor;
  Place place;
};

/// Reads parameters from the tensors that hold them. Of a tensor that holds several, or in another
/// order, the values are kept until another one is read.
class Reader {
 public:
  Reader(ops::Device& device, bool allow_nonfinite)
      : device_(device), allow_nonfinite_(allow_nonfinite) {}

  /// This rank's part of the parameter.
  Result<> read(nn::Parameter& parameter, const std::vector<const Found*>& from) {
    if (from.size() == 1 && from[0]->tensor.plain()) return read_plain(parameter, from[0]->place);
    whole_.resize(static_cast<std::size_t>(parameter.logical_shape().count()));
    for (const Found* found : from) {
      RETURN_IF_ERROR(keep(*found));
      models::unpack(found->tensor, kept_values_.data(), parameter.name, whole_.data());
    }
    part_.resize(static_cast<std::size_t>(parameter.value.count()));
    nn::take_part(whole_, parameter, part_);
    device_.upload(parameter.value, part_);
    return {};
  }

 private:
  /// Converted on the device's threads from the file's pages to where the values belong: nothing
  /// lies anywhere between.
  Result<> read_plain(nn::Parameter& parameter, const Place& place) {
    const auto stored =
        place.file->floats(place.tensor->name, parameter.shard, parameter.value.count());
    RETURN_IF_ERROR(stored);
    device_.upload_from(parameter.value, [&](std::int64_t begin, std::span<float> into) {
      stored->read(begin, into);
    });
    if (allow_nonfinite_ || device_.all_finite(parameter.value)) return {};
    return finite(ops::to_host(device_, parameter.value), place);
  }
  Result<> finite(std::span<const float> values, const Place& place) const {
    return allow_nonfinite_ ? Result<>()
                            : check_finite(values, place.file->path(), place.tensor->name);
  }
  Result<> keep(const Found& found) {
    if (kept_ == &found) return {};
    kept_ = nullptr;
    kept_values_.resize(static_cast<std::size_t>(found.place.tensor->count()));
    RETURN_IF_ERROR(found.place.file->read_f32(found.place.tensor->name, kept_values_));
    RETURN_IF_ERROR(finite(kept_values_, found.place));
    kept_ = &found;
    return {};
  }

  ops::Device& device_;
  bool allow_nonfinite_;
  const Found* kept_ = nullptr;
  std::vector<float> kept_values_, whole_, part_;
};

bool wanted(const nn::Parameter& parameter, const LoadOptions& options) {
  return !parameter.adapter && !(options.fresh_score && parameter.name.starts_with("score."));
}

/// Where the tensors lie that hold the wanted parameters.
Result<std::vector<Found>> find_all(const std::string& folder, const SafetensorsFolder& weights,
                                    const nn::Parameters& parameters, const LoadOptions& options) {
  auto stored = stored_in(folder, parameters, options.tied);
  RETURN_IF_ERROR(stored);
  std::vector<Found> all;
  for (auto& tensor : *stored) {
    if (!wanted(*parameters.find(tensor.rows.front().parameter), options)) continue;
    const auto place = locate(weights, tensor.name, options.tied);
    if (!place) return missing(folder, weights, tensor.name);
    RETURN_IF_ERROR(check_shape(*place, tensor.name, tensor.shape()));
    all.push_back({std::move(tensor), *place});
  }
  return all;
}

}  // namespace

Result<> load_parameters(const std::string& folder, nn::Parameters& into, LoadOptions options) {
  auto weights = SafetensorsFolder::open(folder);
  RETURN_IF_ERROR(weights);
  // Names and shapes first: a mistake in config.json is told before gigabytes are read.
  const auto all = find_all(folder, *weights, into, options);
  RETURN_IF_ERROR(all);
  std::unordered_set<const StoredTensor*> used;
  std::unordered_map<std::string, std::vector<const Found*>> holders;
  for (const Found& found : *all) {
    used.insert(found.place.tensor);
    for (const auto& rows : found.tensor.rows) {
      auto& list = holders[rows.parameter];
      if (list.empty() || list.back() != &found) list.push_back(&found);
    }
  }
  RETURN_IF_ERROR(check_unused(*weights, used, options.tied, into.find("score.weight") != nullptr));
  Reader reader(into.device(), options.allow_nonfinite);
  for (auto& parameter : into.all()) {
    if (!wanted(parameter, options)) continue;
    RETURN_IF_ERROR(reader.read(parameter, holders.at(parameter.name)));
  }
  return {};
}

}  // namespace troupe::engine::checkpoint
