#include "engine/models/overrides.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/models/spec.h"

namespace troupe::engine::models {
namespace {

// Keys that a file may lack because their default is meant.
constexpr auto optional_keys = std::to_array<std::string_view>(
    {"rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq",
     "partial_rotary_factor", "max_position_embeddings", "original_max_position_embeddings",
     "sliding_window", "use_sliding_window", "max_window_layers", "sliding_window_pattern",
     "layer_types", "attn_logit_softcapping", "final_logit_softcapping", "eos_token_id",
     "bos_token_id", "pad_token_id"});
// Keys that name another model.
constexpr auto fixed_keys = std::to_array<std::string_view>(
    {"architectures", "model_type", "auto_map", "torch_dtype", "dtype", "quantization_config"});

Result<> check_key(const Json& config, const std::string& key, const std::string& where) {
  if (std::ranges::find(fixed_keys, key) != fixed_keys.end())
    return fail(Errc::usage, cat("model_overrides.", key, ": describes the weights of ", where,
                                 "; expected a value that leaves them as they are"));
  if (config.find(key) || std::ranges::find(optional_keys, key) != optional_keys.end()) return {};
  std::vector<std::string> known(optional_keys.begin(), optional_keys.end());
  for (const auto& [name, value] : config.object()) known.push_back(name);
  const std::string meant = nearest(key, known);
  return fail(
      Errc::usage,
      cat("model_overrides.", key, ": ", where, " has no such key",
          meant.empty() ? "" : cat("; did you mean ", meant, "?"),
          "; expected one of its keys, or ",
          join(std::vector<std::string>(optional_keys.begin(), optional_keys.end()), ", ")));
}

void put(Json& config, const std::string& key, const Json& value) {
  const Json* present = config.find("rope_parameters");
  const bool inside = present && present->is_object() && present->find("rope_theta");
  if (!inside || (key != "rope_theta" && key != "rope_scaling")) {
    config.set(key, value);
    return;
  }
  Json parameters = *present;
  if (key == "rope_theta") {
    parameters.set(key, value);
  } else {
    const Json theta = *present->find("rope_theta");
    parameters = value.is_object() ? value : Json(Json::Object{{"rope_type", "default"}});
    if (!parameters.find("rope_theta")) parameters.set("rope_theta", theta);
  }
  config.set("rope_parameters", std::move(parameters));
}

/// Another set of weights than before, in words; or "".
std::string changed_weights(const DecoderSpec& before, const DecoderSpec& after) {
  std::map<std::string, Shape> wanted;
  for (const auto& weight : parameter_list(after)) wanted.emplace(weight.name, weight.shape);
  for (const auto& weight : parameter_list(before)) {
    const auto found = wanted.find(weight.name);
    if (found == wanted.end()) return cat("the weight ", weight.name, " would be left out");
    if (found->second != weight.shape)
      return cat("the weight ", weight.name, " would have the shape ", found->second.text(),
                 ", in the files it has ", weight.shape.text());
    wanted.erase(found);
  }
  return wanted.empty() ? "" : cat("the weight ", wanted.begin()->first, " is not in the files");
}

}  // namespace

Result<Json> with_overrides(Json config, const Json& overrides, const std::string& where) {
  if (overrides.is_null() || !config.is_object()) return config;
  if (!overrides.is_object())
    return fail(Errc::usage, cat("model_overrides: expected a map of keys of config.json, found ",
                                 overrides.type_name()));
  if (overrides.object().empty()) return config;
  const auto before = read_spec(config, where);
  RETURN_IF_ERROR(before);
  std::vector<std::string> keys;
  for (const auto& [key, value] : overrides.object()) {
    RETURN_IF_ERROR(check_key(config, key, where));
    put(config, key, value);
    keys.push_back("model_overrides." + key);
  }
  const std::string origin = cat(where, " with ", join(keys, ", "));
  const auto after = read_spec(config, origin);
  RETURN_IF_ERROR(after);
  if (const std::string why = changed_weights(*before, *after); !why.empty())
    return fail(Errc::usage, cat(origin, ": ", why,
                                 "; expected values that leave the weights as they are, such as "
                                 "rope_scaling or max_position_embeddings"));
  return config;
}

}  // namespace troupe::engine::models
