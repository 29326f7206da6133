#include "engine/adapter/peft_config.h"

#include <algorithm>
#include <array>
#include <set>

#include "engine/adapter/module_pattern.h"
#include "engine/base/text/text.h"

namespace troupe::engine::adapter {
namespace {

// Members that do not affect the results of a stored adapter.
constexpr std::array ignored = {"auto_mapping",
                                "base_model_name_or_path",
                                "revision",
                                "peft_version",
                                "task_type",
                                "inference_mode",
                                "megatron_core",
                                "loftq_config",
                                "qalora_group_size",
                                "runtime_config",
                                "lora_ga_config",
                                "corda_config",
                                "eva_config",
                                "layers_pattern",
                                "ensure_weight_tying",
                                "use_qalora_group",
                                "arrow_config"};
// Members that this file reads.
constexpr std::array supported = {"peft_type",           "r",
                                  "lora_alpha",          "lora_dropout",
                                  "use_rslora",          "use_dora",
                                  "target_modules",      "target_parameters",
                                  "exclude_modules",     "rank_pattern",
                                  "alpha_pattern",       "modules_to_save",
                                  "layers_to_transform", "bias",
                                  "init_lora_weights"};
// Initializations that also change the base's weights: the stored adapter belongs to another base.
constexpr std::array other_base = {"pissa", "olora", "corda", "loftq", "lora_ga"};

bool is_off(const Json& value) {
  return value.is_null() || value == Json(false) || (value.is_array() && value.array().empty()) ||
         (value.is_object() && value.object().empty());
}

tl::unexpected<Error> reject(const std::string& where, std::string_view key, const Json& value) {
  return fail(Errc::unsupported, cat(where, ": \"", key, "\": ", quote(value.dump(), 60),
                                     " is not supported and would change the results"));
}

Result<> check_members(const Json& config, const std::string& where) {
  if (const Json* type = config.find("peft_type"); !type || *type != Json("LORA"))
    return fail(Errc::unsupported, cat(where, ": \"peft_type\" must be \"LORA\", found ",
                                       type ? quote(type->dump(), 40) : "nothing",
                                       "; only low-rank adapters are read: merge another one into "
                                       "its base with PEFT "
                                       "(merge_and_unload)"));
  for (const auto& [key, value] : config.object()) {
    const auto is = [&](std::string_view name) { return key == name; };
    if (std::ranges::any_of(ignored, is) || std::ranges::any_of(supported, is) || is_off(value))
      continue;
    return reject(where, key, value);
  }
  if (const Json* bias = config.find("bias"); bias && *bias != Json("none"))
    return reject(where, "bias", *bias);
  if (const Json* start = config.find("init_lora_weights"); start && start->is_string())
    for (const char* name : other_base)
      if (start->string().starts_with(name))
        return fail(Errc::unsupported,
                    cat(where, ": \"init_lora_weights\": ", quote(start->string()),
                        " also changed the base's weights; convert the adapter in PEFT "
                        "(path_initial_model_for_weight_conversion) first"));
  return {};
}

// A list of names, one regular expression, or null.
Result<ModuleNames> names_of(const Json& config, std::string_view key, const std::string& where) {
  const Json* value = config.find(key);
  if (!value || value->is_null()) return ModuleNames();
  if (value->is_string()) {
    const std::string& text = value->string();
    if (text == "all-linear") return ModuleNames{text};
    return ModuleNames{ModulePattern::is_plain(text)
                           ? cat("(?:", text, ")")
                           : text};  // PEFT matches it against the whole name
  }
  if (!value->is_array())
    return fail(Errc::bad_input,
                cat(where, ": \"", key, "\" must be a list of names or a string, found ",
                    value->type_name()));
  ModuleNames names;
  for (const Json& item : value->array()) {
    if (!item.is_string() || !ModulePattern::is_plain(item.string()))
      return fail(Errc::bad_input, cat(where, ": \"", key, "\" must have names of modules, found ",
                                       quote(item.dump(), 60)));
    names.push_back(item.string());
  }
  return names;
}

template <class T, class Read>
Result<std::vector<std::pair<std::string, T>>> pattern_of(const Json& config, std::string_view key,
                                                          const std::string& where, Read read) {
  std::vector<std::pair<std::string, T>> out;
  const Json* value = config.find(key);
  if (!value || value->is_null()) return out;
  if (!value->is_object())
    return fail(Errc::bad_input,
                cat(where, ": \"", key, "\" must be an object, found ", value->type_name()));
  for (const auto& [name, unused] : value->object()) {
    const auto number = read(*value, name, where);
    RETURN_IF_ERROR(number);
    out.emplace_back(name, *number);
  }
  return out;
}

Result<std::vector<std::int64_t>> layers_of(const Json& config, const std::string& where) {
  const Json* value = config.find("layers_to_transform");
  if (!value || value->is_null()) return std::vector<std::int64_t>();
  const Json::Array items = value->is_array() ? value->array() : Json::Array{*value};
  std::vector<std::int64_t> out;
  for (const Json& item : items) {
    if (!item.is_integer())
      return fail(Errc::bad_input,
                  cat(where, ": \"layers_to_transform\" must be numbers of layers, found ",
                      quote(item.dump(), 40)));
    out.push_back(item.integer());
  }
  if (const Json* pattern = config.find("layers_pattern"); pattern && !is_off(*pattern) &&
                                                           *pattern != Json("layers") &&
                                                           *pattern != Json(Json::Array{"layers"}))
    return reject(where, "layers_pattern", *pattern);
  return out;
}

Result<bool> flag(const Json& config, std::string_view key, const std::string& where) {
  const Json* value = config.find(key);
  return !value || value->is_null() ? Result<bool>(false) : get_bool(config, key, where);
}

Json sorted(const std::set<std::string>& names) {
  Json::Array out;
  for (const auto& name : names) out.emplace_back(name);
  return Json(std::move(out));
}

// The ends of the names, where they select these modules and no others; otherwise whole names.
std::set<std::string> shortest_names(const models::LoraSpec& lora,
                                     const models::DecoderSpec& spec) {
  std::set<std::string> ends, whole;
  for (const auto& target : lora.targets) {
    if (models::fused_experts(target.module, spec)) continue;
    ends.insert(target.module.substr(target.module.rfind('.') + 1));
    whole.insert(target.module);
  }
  const auto modules = linear_modules(spec);
  const bool exact = std::ranges::all_of(modules, [&](const auto& module) {
    return whole.contains(module) == ends.contains(module.substr(module.rfind('.') + 1));
  });
  return exact ? ends : whole;
}

// Rank, scale and the variants that PEFT calls use_*.
Result<> read_scalars(const Json& config, const std::string& where, LoraConfig& out) {
  const auto rank = get_integer(config, "r", where);
  const auto alpha = get_number(config, "lora_alpha", where);
  const auto dropout =
      config.find("lora_dropout") ? get_number(config, "lora_dropout", where) : Result<double>(0);
  const auto rslora = flag(config, "use_rslora", where), dora = flag(config, "use_dora", where);
  RETURN_IF_ERROR(rank);
  RETURN_IF_ERROR(alpha);
  RETURN_IF_ERROR(dropout);
  RETURN_IF_ERROR(rslora);
  RETURN_IF_ERROR(dora);
  if (*rank < 1 || *rank > (1 << 16))
    return fail(Errc::bad_input,
                cat(where, ": \"r\" must be from 1 to ", 1 << 16, ", found ", *rank));
  out.rank = static_cast<int>(*rank);
  out.alpha = *alpha;
  out.dropout = *dropout;
  out.rslora = *rslora;
  out.dora = *dora;
  return {};
}

}  // namespace

Result<LoraConfig> read_peft_config(const Json& config, const std::string& where) {
  if (!config.is_object())
    return fail(Errc::bad_input, cat(where, ": expected an object, found ", config.type_name()));
  RETURN_IF_ERROR(check_members(config, where));
  LoraConfig out;
  auto targets = names_of(config, "target_modules", where),
       exclude = names_of(config, "exclude_modules", where),
       parameters = names_of(config, "target_parameters", where),
       saved = names_of(config, "modules_to_save", where);
  for (const auto* names : {&targets, &exclude, &parameters, &saved}) RETURN_IF_ERROR(*names);
  if (targets->empty() && parameters->empty())
    return fail(Errc::bad_input, cat(where, ": \"target_modules\" names no module"));
  auto ranks = pattern_of<std::int64_t>(config, "rank_pattern", where, get_integer);
  auto alphas = pattern_of<double>(config, "alpha_pattern", where, get_number);
  auto layers = layers_of(config, where);
  RETURN_IF_ERROR(ranks);
  RETURN_IF_ERROR(alphas);
  RETURN_IF_ERROR(layers);
  RETURN_IF_ERROR(read_scalars(config, where, out));
  out.targets = std::move(*targets);
  out.exclude = std::move(*exclude);
  out.parameters = std::move(*parameters);
  out.saved = std::move(*saved);
  out.layers = std::move(*layers);
  out.rank_pattern = std::move(*ranks);
  out.alpha_pattern = std::move(*alphas);
  return out;
}

Json to_peft_config(const LoraConfig& config, const models::DecoderSpec& spec,
                    const std::string& base) {
  Json ranks(Json::Object{}), alphas(Json::Object{}), saved;
  for (const auto& [name, rank] : config.rank_pattern) ranks.set(name, rank);
  for (const auto& [name, alpha] : config.alpha_pattern) alphas.set(name, alpha);
  Json parameters;  // no member for other adapters: earlier versions of PEFT do
                    // not know it
  if (!config.parameters.empty())
    parameters = sorted({config.parameters.begin(), config.parameters.end()});
  if (!spec.lora->saved.empty()) saved = sorted({spec.lora->saved.begin(), spec.lora->saved.end()});
  Json out(Json::Object{{"peft_type", "LORA"},
                        {"task_type", spec.labels == 0  ? "CAUSAL_LM"
                                      : spec.score_bias ? "TOKEN_CLS"
                                                        : "SEQ_CLS"},
                        {"base_model_name_or_path", base},
                        {"inference_mode", true},
                        {"r", config.rank},
                        {"lora_alpha", config.alpha},
                        {"lora_dropout", config.dropout},
                        {"bias", "none"},
                        {"fan_in_fan_out", false},
                        {"init_lora_weights", true},
                        {"use_rslora", config.rslora},
                        {"use_dora", config.dora},
                        {"target_modules", sorted(shortest_names(*spec.lora, spec))},
                        {"rank_pattern", std::move(ranks)},
                        {"alpha_pattern", std::move(alphas)},
                        {"modules_to_save", std::move(saved)}});
  if (!parameters.is_null()) out.set("target_parameters", std::move(parameters));
  return out;
}

}  // namespace troupe::engine::adapter
