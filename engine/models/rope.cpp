#include "engine/models/rope.h"

#include <cmath>
#include <numbers>
#include <optional>

#include "engine/base/text.h"

namespace troupe::engine::models {
namespace {

struct Rope {
  double theta = 10000;
  std::string type = "default";
  const Json* parameters = nullptr;
};

Result<double> positive(const Json& object, std::string_view key, const std::string& where) {
  auto value = get_number(object, key, where);
  if (value && !(*value > 0 && std::isfinite(*value)))
    return fail(Errc::bad_input, cat(where, ": \"", key, "\" must be above 0, found ", *value));
  return value;
}

Result<Rope> read_rope(const Json& config, const std::string& where) {
  Rope rope;
  const Json* parameters = config.find("rope_parameters");
  const bool layout5 = parameters && parameters->is_object();
  if (!layout5) parameters = config.find("rope_scaling");
  if (parameters && parameters->is_object()) {
    rope.parameters = parameters;
    for (const char* key : {"type", "rope_type"}) {
      const Json* type = parameters->find(key);
      if (type && type->is_string()) rope.type = type->string();
    }
    if (rope.type == "default" && parameters->find("factor") && !parameters->find("rope_type") && !parameters->find("type"))
      return fail(Errc::bad_input, cat(where, ": rope_scaling has a factor but no type"));
  } else if (parameters && !parameters->is_null()) {
    return fail(Errc::bad_input, cat(where, ": rope_scaling must be an object or null, found ", quote(parameters->dump(), 40)));
  }
  const Json* nested = layout5 ? parameters->find("rope_theta") : nullptr;
  const Json& holder = nested ? *parameters : config;
  if (holder.find("rope_theta")) {
    auto theta = positive(holder, "rope_theta", where);
    if (!theta) return fail(theta.error());
    rope.theta = *theta;
  }
  return rope;
}

// Frequencies below `low` turn factor times slower, above `high` stay, between them mix (transformers modeling_rope_utils, llama3).
Result<> scale_llama3(std::vector<double>& frequencies, const Json& parameters, const std::string& where) {
  const auto factor = positive(parameters, "factor", where), low = positive(parameters, "low_freq_factor", where),
             high = positive(parameters, "high_freq_factor", where),
             original = positive(parameters, "original_max_position_embeddings", where);
  for (const auto* value : {&factor, &low, &high, &original})
    if (!*value) return fail(value->error());
  if (*high <= *low) return fail(Errc::bad_input, cat(where, ": high_freq_factor must be above low_freq_factor"));
  for (double& frequency : frequencies) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    const double smooth = (*original / wavelength - *low) / (*high - *low);
    if (wavelength > *original / *low)
      frequency /= *factor;
    else if (wavelength >= *original / *high)
      frequency = (1 - smooth) * frequency / *factor + smooth * frequency;
  }
  return {};
}

}  // namespace

Result<std::vector<double>> rotary_frequencies(const Json& config, const std::string& where, int head_size) {
  const auto rope = read_rope(config, where);
  if (!rope) return fail(rope.error());
  std::vector<double> frequencies;
  for (int i = 0; i < head_size; i += 2) frequencies.push_back(1 / std::pow(rope->theta, static_cast<double>(i) / head_size));
  if (rope->type == "default") return frequencies;
  if (rope->type == "linear") {
    const auto factor = positive(*rope->parameters, "factor", where);
    if (!factor) return fail(factor.error());
    for (double& frequency : frequencies) frequency /= *factor;
    return frequencies;
  }
  if (rope->type == "llama3") {
    if (auto scaled = scale_llama3(frequencies, *rope->parameters, where); !scaled) return fail(scaled.error());
    return frequencies;
  }
  return fail(Errc::unsupported, cat(where, ": rope type ", quote(rope->type), " is not supported (known: default, linear, llama3)"));
}

}  // namespace troupe::engine::models
