#include "engine/checkpoint/load_parameters.h"

#include <filesystem>
#include <unordered_map>

#include "engine/base/errors/check.h"
#include "engine/base/files/mapped_pages.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/cancellation.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/stored_map.h"
#include "engine/checkpoint/tensor_names.h"
#include "engine/nn/logical_tensors.h"

namespace troupe::engine::checkpoint {
namespace {

using Location = SafetensorsFolder::Location;

/// A tensor of the files and its location.
struct Found {
  models::StoredTensor tensor;
  Location location;
};

/// Reads parameters from the tensors that hold them. Caches the values of the last tensor that
/// holds several parameters or another order.
class Reader {
 public:
  Reader(ops::Device& device, bool allow_nonfinite)
      : device_(device), allow_nonfinite_(allow_nonfinite) {}

  /// This rank's part of the parameter.
  Result<> read(nn::Parameter& parameter, const std::vector<const Found*>& from) {
    if (from.size() == 1 && from[0]->tensor.plain())
      return read_plain(parameter, from[0]->location);
    whole_.resize(static_cast<std::size_t>(parameter.logical_shape().count()));
    for (const Found* found : from) {
      RETURN_IF_ERROR(keep(*found));
      models::extract_parameter(found->tensor, kept_values_.data(), parameter.name, whole_.data());
    }
    part_.resize(static_cast<std::size_t>(parameter.value.count()));
    nn::copy_shard(whole_, parameter, part_);
    device_.upload(parameter.value, part_);
    return {};
  }

 private:
  /// Converts the file's pages directly into device memory, on the device's threads.
  Result<> read_plain(nn::Parameter& parameter, const Location& location) {
    const auto stored =
        location.file->floats(location.tensor->name, parameter.shard, parameter.value.count());
    RETURN_IF_ERROR(stored);
    device_.upload_from(parameter.value, [&](std::int64_t begin, std::span<float> into) {
      stored->read(begin, into);
    });
    if (allow_nonfinite_ || device_.all_finite(parameter.value)) return {};
    return finite(ops::to_host(device_, parameter.value), location);
  }
  Result<> finite(std::span<const float> values, const Location& location) const {
    return allow_nonfinite_ ? Result<>()
                            : check_finite(values, location.file->path(), location.tensor->name);
  }
  Result<> keep(const Found& found) {
    if (kept_ == &found) return {};
    kept_ = nullptr;
    kept_values_.resize(static_cast<std::size_t>(found.location.tensor->count()));
    RETURN_IF_ERROR(found.location.file->read_f32(found.location.tensor->name, kept_values_));
    RETURN_IF_ERROR(finite(kept_values_, found.location));
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

/// Locates the tensors that hold the wanted parameters.
Result<std::vector<Found>> find_all(const std::string& folder, const SafetensorsFolder& weights,
                                    const nn::Parameters& parameters, const LoadOptions& options) {
  auto stored = stored_in(folder, parameters, options.tied);
  RETURN_IF_ERROR(stored);
  std::vector<Found> all;
  for (auto& tensor : *stored) {
    if (!wanted(*parameters.find(tensor.rows.front().parameter), options)) continue;
    const auto location = locate(weights, tensor.name, options.tied);
    if (!location) return missing(folder, weights, tensor.name);
    RETURN_IF_ERROR(check_shape(*location, tensor.name, tensor.shape()));
    all.push_back({std::move(tensor), *location});
  }
  return all;
}

}  // namespace

Result<> load_parameters(const std::string& folder, nn::Parameters& into, LoadOptions options) {
  auto weights = SafetensorsFolder::open(folder);
  RETURN_IF_ERROR(weights);
  // Names and shapes first: report a wrong config.json before reading gigabytes.
  const nn::Parameters& whole = options.whole ? *options.whole : into;
  const auto all = find_all(folder, *weights, whole, options);
  RETURN_IF_ERROR(all);
  std::unordered_set<const StoredTensor*> used;
  std::unordered_map<std::string, std::vector<const Found*>> holders;
  for (const Found& found : *all) {
    used.insert(found.location.tensor);
    for (const auto& rows : found.tensor.rows) {
      auto& list = holders[rows.parameter];
      if (list.empty() || list.back() != &found) list.push_back(&found);
    }
  }
  RETURN_IF_ERROR(
      check_unused(*weights, used, options.tied, whole.find("score.weight") != nullptr));
  Reader reader(into.device(), options.allow_nonfinite);
  for (auto& parameter : into.all()) {
    if (!wanted(parameter, options)) continue;
    RETURN_IF_ERROR(check_cancelled());
    const auto& from = holders.at(parameter.name);
    RETURN_IF_ERROR(reader.read(parameter, from));
    // A process must not hold the whole file beside the model.
    for (const Found* found : from)
      release_pages(found->location.file->bytes(*found->location.tensor));
  }
  return {};
}

}  // namespace troupe::engine::checkpoint
