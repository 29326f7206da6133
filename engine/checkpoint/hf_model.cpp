#include "engine/checkpoint/hf_model.h"

#include <filesystem>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/stored_map.h"
#include "engine/checkpoint/tensor_names.h"

namespace troupe::engine::checkpoint {
namespace {

using Place = SafetensorsFolder::Place;

/// A tensor of the files, where it lies.
struct Found {
  models::StoredTensor tensor;
  Place place;
};

/// Reads parameters from the tensors that hold them. Of a tensor that holds several, or in another order, the values are kept until another
/// one is read.
class Reader {
 public:
  explicit Reader(bool allow_nonfinite) : allow_nonfinite_(allow_nonfinite) {}

  /// This rank's part of the parameter, into `values`.
  Result<> read(const nn::Parameter& parameter, const std::vector<const Found*>& from, std::vector<float>& values) {
    values.resize(static_cast<std::size_t>(parameter.value.count()));
    if (from.size() == 1 && from[0]->tensor.plain()) {
      const Place& place = from[0]->place;
      auto done = place.file->read_part(place.tensor->name, parameter.shard, values);
      return done ? finite(values, place) : done;
    }
    whole_.resize(static_cast<std::size_t>(parameter.logical_shape().count()));
    for (const Found* found : from) {
      if (auto kept = keep(*found); !kept) return kept;
      models::unpack(found->tensor, kept_values_.data(), parameter.name, whole_.data());
    }
    nn::take_part(whole_, parameter, values);
    return {};
  }

 private:
  Result<> finite(std::span<const float> values, const Place& place) const {
    return allow_nonfinite_ ? Result<>() : check_finite(values, place.file->path(), place.tensor->name);
  }
  Result<> keep(const Found& found) {
    if (kept_ == &found) return {};
    kept_ = nullptr;
    kept_values_.resize(static_cast<std::size_t>(found.place.tensor->count()));
    if (auto read = found.place.file->read_f32(found.place.tensor->name, kept_values_); !read) return read;
    if (auto clean = finite(kept_values_, found.place); !clean) return clean;
    kept_ = &found;
    return {};
  }

  bool allow_nonfinite_;
  const Found* kept_ = nullptr;
  std::vector<float> kept_values_, whole_;
};

bool wanted(const nn::Parameter& parameter, const LoadOptions& options) {
  return !parameter.adapter && !(options.fresh_score && parameter.name.starts_with("score."));
}

/// Where the tensors lie that hold the wanted parameters.
Result<std::vector<Found>> find_all(const std::string& folder, const SafetensorsFolder& weights, const nn::Parameters& parameters,
                                    const LoadOptions& options) {
  auto stored = stored_in(folder, parameters, options.tied);
  if (!stored) return fail(stored.error());
  std::vector<Found> all;
  for (auto& tensor : *stored) {
    if (!wanted(*parameters.find(tensor.rows.front().parameter), options)) continue;
    const auto place = locate(weights, tensor.name, options.tied);
    if (!place) return missing(folder, weights, tensor.name);
    if (auto fits = check_shape(*place, tensor.name, tensor.shape()); !fits) return fail(fits.error());
    all.push_back({std::move(tensor), *place});
  }
  return all;
}

}  // namespace

Result<> load_parameters(const std::string& folder, nn::Parameters& into, LoadOptions options) {
  auto weights = SafetensorsFolder::open(folder);
  if (!weights) return fail(weights.error());
  // Names and shapes first: a mistake in config.json is told before gigabytes are read.
  const auto all = find_all(folder, *weights, into, options);
  if (!all) return fail(all.error());
  std::unordered_set<const StoredTensor*> used;
  std::unordered_map<std::string, std::vector<const Found*>> holders;
  for (const Found& found : *all) {
    used.insert(found.place.tensor);
    for (const auto& rows : found.tensor.rows) {
      auto& list = holders[rows.parameter];
      if (list.empty() || list.back() != &found) list.push_back(&found);
    }
  }
  if (auto clean = check_unused(*weights, used, options.tied, into.find("score.weight") != nullptr); !clean) return clean;
  Reader reader(options.allow_nonfinite);
  std::vector<float> values;
  for (auto& parameter : into.all()) {
    if (!wanted(parameter, options)) continue;
    if (auto read = reader.read(parameter, holders.at(parameter.name), values); !read) return read;
    into.device().upload(parameter.value, values);
  }
  return {};
}

}  // namespace troupe::engine::checkpoint
