#include "engine/checkpoint/hf_model.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "engine/base/text.h"
#include "engine/checkpoint/safetensors_folder.h"

namespace troupe::engine::checkpoint {
namespace {

using Place = SafetensorsFolder::Place;

// The names under which decoder families store the two ends of a tied model.
constexpr std::string_view embedding_names[] = {"model.embed_tokens.weight", "transformer.wte.weight"};
constexpr std::string_view head_name = "lm_head.weight";
// transformers calls a score head "score", other exporters "classifier".
constexpr std::string_view score_prefix = "score.", score_alias = "classifier.";

bool is_embedding(std::string_view name) {
  return std::find(std::begin(embedding_names), std::end(embedding_names), name) != std::end(embedding_names);
}

// Buffers that old versions of transformers stored, and every version recomputes from config.json.
bool is_recomputed(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.masked_bias"); }

std::string alias_of(const std::string& name) { return cat(score_alias, std::string_view(name).substr(score_prefix.size())); }

// Under its own name, under the name that __metadata__ gives for it (safetensors' save_model does so for shared tensors), or, in a
// tied model, under the name of the other end.
std::optional<Place> locate(const SafetensorsFolder& folder, const std::string& name, bool tied) {
  if (auto place = folder.find(name)) return place;
  if (const std::string* stored = folder.metadata(name))
    if (auto place = folder.find(*stored)) return place;
  if (name.starts_with(score_prefix)) return folder.find(alias_of(name));
  if (tied && is_embedding(name)) return folder.find(head_name);
  if (tied && name == head_name)
    for (const auto embedding : embedding_names)
      if (auto place = folder.find(embedding)) return place;
  return std::nullopt;
}

bool equal_tensors(const Place& a, const Place& b) {
  const auto left = a.file->bytes(*a.tensor), right = b.file->bytes(*b.tensor);
  return a.tensor->type == b.tensor->type && a.tensor->shape == b.tensor->shape && left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

Result<> check_shape(const Place& place, const nn::Parameter& parameter) {
  const auto& found = place.tensor->shape;
  const Shape wanted = parameter.logical_shape();
  bool same = found.size() == static_cast<std::size_t>(wanted.rank());
  for (int axis = 0; same && axis < wanted.rank(); ++axis) same = found[static_cast<std::size_t>(axis)] == wanted[axis];
  if (same) return {};
  return fail(Errc::corrupt, cat(place.file->path(), ": tensor \"", parameter.name, "\": expected ", wanted.text(),
                                 " (from config.json), found ", shape_text(found)));
}

tl::unexpected<Error> missing(const std::string& folder, const SafetensorsFolder& weights, const std::string& name) {
  std::vector<std::string> stored;
  for (const auto& place : weights.all()) stored.push_back(place.tensor->name);
  const std::string near = nearest(name, stored);
  return fail(Errc::corrupt, cat(folder, ": expected tensor \"", name, "\" (", stored.size(), " tensors found)",
                                 near.empty() ? "" : cat("; the nearest name is ", quote(near))));
}

// A tensor nobody asked for is a sign that config.json describes another model.
Result<> check_unused(const SafetensorsFolder& weights, const std::unordered_set<const StoredTensor*>& used, bool tied, bool scores) {
  for (const auto& place : weights.all()) {
    const std::string& name = place.tensor->name;
    if (used.contains(place.tensor) || is_recomputed(name)) continue;
    if (scores && name == head_name) continue;
    if (tied && (name == head_name || is_embedding(name))) {
      const bool equal = std::any_of(used.begin(), used.end(), [&](const StoredTensor* other) {
        return (other->name == head_name || is_embedding(other->name)) && equal_tensors(place, *weights.find(other->name));
      });
      if (equal) continue;
      return fail(Errc::corrupt, cat(place.file->path(), ": tensor \"", name, "\" differs from the embedding, but config.json says that ",
                                     "they are one (tie_word_embeddings); set it to false to load both"));
    }
    return fail(Errc::corrupt, cat(place.file->path(), ": the model has no place for tensor ", quote(name), " ",
                                   shape_text(place.tensor->shape), "; config.json describes another model"));
  }
  return {};
}

}  // namespace

Result<> load_parameters(const std::string& folder, nn::Parameters& into, LoadOptions options) {
  auto weights = SafetensorsFolder::open(folder);
  if (!weights) return fail(weights.error());
  std::unordered_set<const StoredTensor*> used;
  std::vector<std::pair<nn::Parameter*, Place>> places;
  for (auto& parameter : into.all()) {  // names and shapes first: a mistake in config.json is told before gigabytes are read
    if (parameter.adapter || (options.fresh_score && parameter.name.starts_with(score_prefix))) continue;
    const auto place = locate(*weights, parameter.name, options.tied);
    if (!place) return missing(folder, *weights, parameter.name);
    if (auto fits = check_shape(*place, parameter); !fits) return fits;
    used.insert(place->tensor);
    places.emplace_back(&parameter, *place);
  }
  if (auto clean = check_unused(*weights, used, options.tied, into.find("score.weight") != nullptr); !clean) return clean;
  std::vector<float> values;
  for (auto& [parameter, place] : places) {
    values.resize(static_cast<std::size_t>(parameter->value.count()));
    const std::string& name = place.tensor->name;
    if (auto read = place.file->read_part(name, parameter->shard, values); !read) return read;
    if (!options.allow_nonfinite)
      if (auto finite = check_finite(values, place.file->path(), name); !finite) return finite;
    into.device().upload(parameter->value, values);
  }
  return {};
}

}  // namespace troupe::engine::checkpoint
