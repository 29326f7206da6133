#include "engine/models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/text/text.h"

namespace troupe::engine::models {
namespace {

constexpr double max_positions_limit = 268435456;

/// Reads the scaling of one table; `in` has the object with the fields of its type.
struct Scaling {
  ConfigReader& in;
  DecoderSpec& spec;
  nn::RotarySpec& table;
  double theta;
  int rotary_dim;  ///< rotated channels of a head

  double original() {
    return in.positive({"original_max_position_embeddings"},
                       static_cast<double>(spec.max_positions));
  }
  double at_least_one(std::string_view key) {
    const double value = in.positive({key});
    if (value < 1) in.fail(Errc::bad_input, cat("\"", key, "\" must be at least 1, found ", value));
    return std::max(value, 1.0);
  }
  void extend_positions(double positions) {
    spec.max_positions = std::max(
        spec.max_positions, static_cast<std::int64_t>(std::min(positions, max_positions_limit)));
  }
  void linear();
  void dynamic();
  void yarn();
  void longrope();
  void llama3();
  std::vector<double> rescaled(std::string_view key);
};

void Scaling::linear() {
  const double factor = in.positive({"factor"});
  for (double& frequency : table.inverse_frequencies) frequency /= factor;
}

void Scaling::dynamic() {
  if (rotary_dim < 4)
    in.fail(Errc::unsupported, "rope type \"dynamic\" needs at least 4 rotated channels");
  table.ntk_factor = at_least_one("factor");
  table.original_length = spec.max_positions;
  extend_positions(table.ntk_factor * static_cast<double>(spec.max_positions));
}

// High frequencies stay, low ones are divided by the factor, and those between are interpolated
// (transformers modeling_rope_utils, yarn).
void Scaling::yarn() {
  const double before = original();
  const double factor = in.find("factor")
                            ? at_least_one("factor")
                            : std::max(1.0, static_cast<double>(spec.max_positions) / before);
  if (in.find("original_max_position_embeddings")) extend_positions(before * factor);
  const double fast = in.positive({"beta_fast"}, 32), slow = in.positive({"beta_slow"}, 1);
  const auto pair_of = [&](double rotations) {
    return rotary_dim * std::log(before / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = pair_of(fast), high = pair_of(slow);
  if (in.flag("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rotary_dim - 1.0);
  if (low == high) high += 0.001;
  for (int i = 0; i < rotary_dim / 2; ++i) {
    const double share = std::clamp((i - low) / (high - low), 0.0, 1.0);
    double& frequency = table.inverse_frequencies[static_cast<std::size_t>(i)];
    frequency = frequency / factor * share + frequency * (1 - share);
  }
  const auto scale = [&](double by) { return factor <= 1 ? 1.0 : 0.1 * by * std::log(factor) + 1; };
  const double own = in.number({"mscale"}, 0), all = in.number({"mscale_all_dim"}, 0);
  table.factor =
      in.number({"attention_factor"}, own != 0 && all != 0 ? scale(own) / scale(all) : scale(1));
}

std::vector<double> Scaling::rescaled(std::string_view key) {
  std::vector<double> out = table.inverse_frequencies;
  const Json* list = in.find(key);
  const auto pairs = static_cast<std::size_t>(rotary_dim / 2);
  if (!list || !list->is_array() || list->array().size() != pairs) {
    in.fail(Errc::bad_input, cat("\"", key, "\" must be a list of ", pairs, " numbers, found ",
                                 list && list->is_array() ? cat(list->array().size(), " values")
                                 : list                   ? list->type_name()
                                                          : "none"));
    return out;
  }
  for (std::size_t i = 0; i < pairs; ++i) {
    const Json& value = list->array()[i];
    if (value.is_number() && value.number() > 0 && std::isfinite(value.number()))
      out[i] /= value.number();
    else
      in.fail(Errc::bad_input,
              cat("\"", key, "\" must be numbers above 0, found ", quote(value.dump(), 40)));
  }
  return out;
}

// Two sets of frequencies: for sequences up to the original length, and for longer ones.
void Scaling::longrope() {
  const double before = original();
  const double factor = in.find("factor") ? in.positive({"factor"})
                                          : static_cast<double>(spec.max_positions) / before;
  table.long_inverse_frequencies = rescaled("long_factor");
  table.inverse_frequencies = rescaled("short_factor");
  table.original_length = static_cast<std::int64_t>(std::min(before, max_positions_limit));
  table.factor = in.number({"attention_factor"},
                           factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(before)));
}

// Frequencies below `low` are divided by the factor, above `high` stay, between them are
// interpolated (transformers modeling_rope_utils, llama3).
void Scaling::llama3() {
  const double factor = in.positive({"factor"}), low = in.positive({"low_freq_factor"}),
               high = in.positive({"high_freq_factor"}),
               before = in.positive({"original_max_position_embeddings"});
  if (high <= low)
    return in.fail(Errc::bad_input, "high_freq_factor must be above low_freq_factor");
  for (double& frequency : table.inverse_frequencies) {
    if (frequency == 0) continue;
    const double wavelength = 2 * std::numbers::pi / frequency;
    const double smooth = (before / wavelength - low) / (high - low);
    if (wavelength > before / low)
      frequency /= factor;
    else if (wavelength >= before / high)
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
  }
}

void scale(Scaling& how, const std::string& type) {
  if (type == "default") return;
  if (type == "linear") return how.linear();
  if (type == "dynamic") return how.dynamic();
  if (type == "yarn") return how.yarn();
  if (type == "longrope" || type == "su") return how.longrope();
  if (type == "llama3") return how.llama3();
  how.in.fail(Errc::unsupported,
              cat("rope type ", quote(type),
                  " is not supported (known: default, linear, dynamic, yarn, longrope, llama3)"));
}

std::string type_of(ConfigReader& in) {
  if (!in.find("rope_type") && !in.find("type") && in.find("factor"))
    in.fail(Errc::bad_input, "rope_scaling has a factor but no type");
  const std::string type = in.text({"rope_type", "type"}, "default");
  return type == "yarn" && in.find("long_factor") ? "longrope"
                                                  : type;  // as the first Phi-3 files call it
}

// Values that are valid one by one may still give no valid table: a theta of 1 with yarn, a factor
// beyond the range of double.
void check_table(ConfigReader& in, const nn::RotarySpec& table) {
  const auto sane = [](double frequency) { return std::isfinite(frequency); };
  if (std::ranges::all_of(table.inverse_frequencies, sane) &&
      std::ranges::all_of(table.long_inverse_frequencies, sane) && std::isfinite(table.factor) &&
      std::isfinite(table.ntk_factor))
    return;
  in.fail(Errc::bad_input, "the rope parameters give frequencies that are not finite");
}

// Number of rotated channels of a head.
int rotary_dim_of(ConfigReader& in, const DecoderSpec& spec, const RopeStyle& style) {
  const double share = in.positive({"partial_rotary_factor"}, style.partial);
  if (share != 1 && !style.may_be_partial)
    in.fail(Errc::unsupported,
            cat("\"partial_rotary_factor\": ", share,
                " is not supported for this architecture and would change the results"));
  const int rotary_dim = static_cast<int>(std::min(share, 1.0) * spec.head_size);
  if (share > 1 || rotary_dim < 2 || rotary_dim % 2)
    in.fail(Errc::bad_input, cat("\"partial_rotary_factor\" must leave an even number of the ",
                                 spec.head_size, " channels, found ", share));
  return std::max(rotary_dim, 2);
}

// Converts both layouts to that of version 5. Where a file has both, rope_scaling replaces
// rope_parameters as a whole, as in transformers 5 (RotaryEmbeddingConfigMixin) and vLLM.
Json parameters_of(ConfigReader& in, const RopeStyle& style) {
  const Json *parameters = in.find("rope_parameters"), *scaling = in.find("rope_scaling");
  const bool scales = scaling && !(scaling->is_object() && scaling->object().empty());
  const char* name = scales ? "rope_scaling" : "rope_parameters";
  if (scales) parameters = scaling;
  if (parameters && !parameters->is_object())
    in.fail(Errc::bad_input,
            cat(name, " must be an object or null, found ", quote(parameters->dump(), 40)));
  Json out = parameters && parameters->is_object() ? *parameters : Json(Json::Object{});
  for (const auto& [key, alias] :
       {std::pair{"rope_theta", style.theta_name}, {"partial_rotary_factor", style.partial_name}})
    if (const Json* outside = in.find(alias); outside && !out.find(key)) out.set(key, *outside);
  // Phi-3 writes it outside the object; the outer value takes precedence.
  if (const Json* outside = in.find("original_max_position_embeddings"))
    out.set("original_max_position_embeddings", *outside);
  return out;
}

}  // namespace

nn::RotarySpec read_rotary_table(ConfigReader& in, const Json& parameters, DecoderSpec& spec,
                                 const RopeStyle& style) {
  if (!parameters.is_object())
    in.fail(Errc::bad_input,
            cat("a table of rope_parameters must be an object, found ", parameters.type_name()));
  ConfigReader inner = in.inside(parameters);
  nn::RotarySpec table;
  const int rotary_dim = rotary_dim_of(inner, spec, style);
  const double theta = inner.positive({"rope_theta"}, style.theta);
  for (int i = 0; i < spec.head_size; i += 2)
    table.inverse_frequencies.push_back(
        i < rotary_dim ? 1 / std::pow(theta, static_cast<double>(i) / rotary_dim) : 0.0);
  Scaling how{inner, spec, table, theta, rotary_dim};
  scale(how, type_of(inner));
  check_table(inner, table);
  if (style.interleaved || rotary_dim != spec.head_size)
    spec.head_order = {spec.head_size, rotary_dim, style.interleaved};
  in.take(inner);
  return table;
}

void read_rotary(ConfigReader& in, DecoderSpec& spec, const RopeStyle& style) {
  const Json parameters = parameters_of(in, style);
  spec.rotary = {read_rotary_table(in, parameters, spec, style)};
}

void read_rotary_by_layer(ConfigReader& in, DecoderSpec& spec, const RopeStyle& style,
                          const Json& sliding, const RopeStyle& sliding_style) {
  const Json* both = in.find("rope_parameters");
  const Json none(Json::Object{});
  if (both && both->find("full_attention")) {
    const Json* local = both->find("sliding_attention");
    spec.rotary = {read_rotary_table(in, *both->find("full_attention"), spec, style),
                   read_rotary_table(in, local ? *local : none, spec, sliding_style)};
  } else {
    read_rotary(in, spec, style);
    spec.rotary.push_back(read_rotary_table(in, sliding, spec, sliding_style));
  }
  for (auto& layer : spec.layer) layer.rotary = layer.window > 0 ? 1 : 0;
}

}  // namespace troupe::engine::models
