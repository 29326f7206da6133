#include "launch/tools/megatron/config_fields.h"

#include <array>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::launch::tools::megatron {
namespace {

constexpr std::string_view scaling = "rope_scaling.";

/// The object of transformers 4 or that of 5.
const Json* scaling_of(const Json& config) {
  for (const char* name : {"rope_scaling", "rope_parameters"})
    if (const Json* found = config.find(name); found && found->is_object()) return found;
  return nullptr;
}

const Json* value_of(const Json& config, std::string_view field) {
  if (!field.starts_with(scaling)) return config.find(field);
  const std::string_view name = field.substr(scaling.size());
  const Json* object = scaling_of(config);
  const Json* found = object ? object->find(name) : nullptr;
  if (!found && object && name == "rope_type") found = object->find("type");
  // Phi-3 has it beside its scaling.
  return found || name != "original_max_position_embeddings" ? found : config.find(name);
}

/// What a scaling has where its object does not say it (transformers, modeling_rope_utils.py).
double default_of(std::string_view field) {
  if (field == "rope_scaling.beta_fast") return 32;
  return field == "rope_scaling.beta_slow" ? 1 : 0;
}

bool same_number(std::string_view text, const Json& value) {
  const auto number = parse_number<double>(trim(text));
  return number && value.is_number() && *number == value.number();
}

/// "1.0,1.02" and a list, or a number or a word.
bool same(const Given& given, const Json& value) {
  if (value.is_array()) {
    const std::string text = join(given.values, ",");
    const auto numbers = tables::pieces(text, ',');
    bool equal = numbers.size() == value.array().size();
    for (std::size_t i = 0; equal && i < numbers.size(); ++i)
      equal = same_number(numbers[i], value.array()[i]);
    return equal;
  }
  const std::string& text = given.values[0];
  if (value.is_string())
    return value.string() == text || (value.string() == "su" && text == "longrope");
  return same_number(text, value);
}

std::string shortened(const std::string& text) {
  constexpr std::size_t most = 40;
  return text.size() > most ? cat(text.substr(0, most), "...") : text;
}

/// The first of these names that config.json has, also in rope_parameters.
struct Named {
  std::string key;
  double value = 0;
  double unit = 1;  ///< config.json has the value divided by it
};
template <std::size_t n>
Named first_of(const Json& config, const std::array<std::string_view, n>& names) {
  const Json* parameters = config.find("rope_parameters");
  for (const auto name : names)
    for (const Json* place : {&config, parameters})
      if (const Json* found = place && place->is_object() ? place->find(name) : nullptr;
          found && found->is_number())
        return {std::string(name), found->number()};
  return {};
}

constexpr std::array<std::string_view, 6> epsilon_names{"rms_norm_eps",      "layer_norm_epsilon",
                                                        "layernorm_epsilon", "layer_norm_eps",
                                                        "norm_eps",          "norm_epsilon"};
constexpr std::array<std::string_view, 1> theta_names{"rope_theta"};

/// The base of the rotary positions; ChatGLM's files have it divided by 10000.
Named theta_of(const Json& config) {
  constexpr double unit = 10000;
  const Json* ratio = config.find("rope_ratio");
  if (!ratio || !ratio->is_number()) return first_of(config, theta_names);
  return {"rope_ratio", ratio->number() * unit, unit};
}

void replace(const CommandLine& line, std::string_view name, const Named& here, Replaced& out) {
  const Flag* flag = find_flag(name);
  const Given* given = line.find(name);
  const std::string text = given ? given->values[0] : std::string(flag->otherwise);
  const auto wanted = parse_number<double>(text);
  if (!wanted || !(*wanted > 0)) {
    out.problems.push_back(cat("--", name, ' ', text, ": expected a positive number"));
    return;
  }
  if (here.value == *wanted || (here.key.empty() && !given)) return;
  if (here.key.empty()) {
    out.problems.push_back(cat("--", name, ' ', text, " contradicts config.json, whose model has ",
                               to_text(here.value)));
    return;
  }
  out.overrides.set(here.key, *wanted / here.unit);
  const std::string what =
      given ? cat("--", name, ' ', text, " counts") : cat("--", name, " is left out: ", text);
  out.notes.push_back(cat(what, ", as in Megatron; config.json says ",
                          here.value > 0 ? to_text(here.value) : std::string("nothing")));
}

}  // namespace

std::vector<std::string> differing_fields(const CommandLine& line, const Json& config) {
  std::vector<std::string> problems;
  for (const Given& given : line.flags) {
    if (given.flag->rule != Rule::field) continue;
    const std::string_view field = given.flag->argument;
    const Json* value = value_of(config, field);
    const bool absent = !value || value->is_null();
    const double otherwise = default_of(field);
    const bool equal = absent ? otherwise != 0 && same_number(given.values[0], Json(otherwise))
                              : same(given, *value);
    if (equal) continue;
    problems.push_back(
        cat("--", given.flag->name, ' ', shortened(join(given.values, " ")),
            " contradicts config.json, which ",
            absent ? cat("has no ", field) : cat("says ", shortened(value->dump()))));
  }
  return problems;
}

Replaced replaced_values(const CommandLine& line, const Json& config,
                         const engine::models::DecoderSpec& spec) {
  Replaced out;
  Named epsilon = first_of(config, epsilon_names), theta = theta_of(config);
  if (epsilon.key.empty()) epsilon.value = spec.norm_eps;
  // The default of the family is not known here; one key is that of all of them.
  if (theta.key.empty() && line.find("rotary-base")) theta.key = "rope_theta";
  replace(line, "norm-epsilon", epsilon, out);
  if (!spec.rotary.empty()) replace(line, "rotary-base", theta, out);
  return out;
}

}  // namespace troupe::launch::tools::megatron
