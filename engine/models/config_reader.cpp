#include "engine/models/config_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/text/text.h"

namespace troupe::engine::models {
namespace {

using Key = std::string_view;

// Fields that some architecture reads, and the values with which they have no effect: absent,
// false, 1, 0.
constexpr auto present = std::to_array<Key>({"quantization_config",
                                             "num_experts",
                                             "num_local_experts",
                                             "n_routed_experts",
                                             "attn_logit_softcapping",
                                             "final_logit_softcapping",
                                             "q_lora_rank",
                                             "kv_lora_rank",
                                             "query_pre_attn_scalar",
                                             "attention_multiplier",
                                             "no_rope_layers",
                                             "rope_local_base_freq",
                                             "sliding_window",
                                             "layer_types",
                                             "vision_config",
                                             "text_config",
                                             "audio_config",
                                             "qk_norm_type",
                                             "clip_qkv",
                                             "attention_chunk_size",
                                             "mup_scale",
                                             "scale_emb",
                                             "dual_chunk_attention_config"});
constexpr auto off = std::to_array<Key>(
    {"use_sliding_window", "rope_interleaved", "qk_layernorm", "use_qk_norm",
     "use_parallel_residual", "parallel_attn", "alibi", "apply_residual_connection_post_layernorm",
     "scale_attn_by_inverse_layer_idx", "add_cross_attention", "use_bidirectional_attention",
     "is_encoder_decoder", "attn_temperature_tuning"});
constexpr auto one =
    std::to_array<Key>({"partial_rotary_factor", "logits_scaling", "embedding_multiplier",
                        "residual_multiplier", "rotary_pct", "logit_scale"});
constexpr auto zero =
    std::to_array<Key>({"attention_dropout", "hidden_dropout", "residual_dropout",
                        "embedding_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop"});

// A disabled window, and layers that all have full attention, have no effect.
bool has_no_effect(const Json& config, std::string_view key, const Json& value) {
  if (key == "sliding_window") {
    const Json* used = config.find("use_sliding_window");
    return used != nullptr && *used == Json(false);
  }
  if (key != "layer_types" || !value.is_array()) return false;
  return std::ranges::all_of(value.array(),
                             [](const Json& type) { return type == Json("full_attention"); });
}

}  // namespace

const Json* ConfigReader::find(std::string_view key) const {
  const Json* member = config_.find(key);
  return member && !member->is_null() ? member : nullptr;
}

const Json* ConfigReader::first(const Keys& keys, std::string_view& key) const {
  for (const auto name : keys) {
    key = name;
    if (const Json* member = find(name)) return member;
  }
  key = keys.empty() ? std::string_view() : keys.front();
  return nullptr;
}

void ConfigReader::fail(Errc code, std::string what) {
  if (!error_) error_ = Error{code, cat(where_, ": ", what)};
}

Result<> ConfigReader::result() const {
  return error_ ? Result<>(tl::make_unexpected(*error_)) : Result<>();
}

void ConfigReader::take(const ConfigReader& inner) {
  if (!error_) error_ = inner.error_;
}

std::int64_t ConfigReader::size(const Keys& keys, std::int64_t low, std::int64_t high,
                                std::optional<std::int64_t> fallback) {
  std::string_view key;
  const Json* member = first(keys, key);
  if (!member && fallback) return *fallback;
  const auto value = get_integer(config_, key, where_);
  if (!value && !error_) error_ = value.error();
  if (!value) return low;
  if (*value < low || *value > high)
    fail(Errc::bad_input,
         cat("\"", key, "\" must be between ", low, " and ", high, ", found ", *value));
  return std::clamp(*value, low, high);
}

double ConfigReader::number(const Keys& keys, std::optional<double> fallback) {
  std::string_view key;
  const Json* member = first(keys, key);
  if (!member && fallback) return *fallback;
  const auto value = get_number(config_, key, where_);
  if (!value && !error_) error_ = value.error();
  if (!value) return 1;
  if (!std::isfinite(*value))
    fail(Errc::bad_input, cat("\"", key, "\" must be finite, found ", *value));
  return *value;
}

double ConfigReader::positive(const Keys& keys, std::optional<double> fallback) {
  const double value = number(keys, fallback);
  std::string_view key;
  first(keys, key);
  if (value > 0) return value;
  fail(Errc::bad_input, cat("\"", key, "\" must be above 0, found ", value));
  return 1;
}

bool ConfigReader::flag(std::string_view key, bool fallback) {
  if (!find(key)) return fallback;
  const auto value = get_bool(config_, key, where_);
  if (!value && !error_) error_ = value.error();
  return value ? *value : fallback;
}

std::string ConfigReader::text(const Keys& keys, std::string_view fallback) {
  std::string_view key;
  const Json* member = first(keys, key);
  if (!member) return std::string(fallback);
  const auto value = get_string(config_, key, where_);
  if (!value && !error_) error_ = value.error();
  return value ? *value : std::string(fallback);
}

std::vector<std::int32_t> ConfigReader::token_ids(std::string_view key, std::int64_t vocabulary) {
  std::vector<std::int32_t> ids;
  const Json* member = find(key);
  if (!member) return ids;
  const Json::Array items = member->is_array() ? member->array() : Json::Array{*member};
  for (const auto& item : items) {
    if (!item.is_integer() || item.integer() >= vocabulary || item.integer() < -1) {
      fail(Errc::bad_input, cat("\"", key, "\" must be a token id below vocab_size ", vocabulary,
                                ", found ", quote(item.dump(), 40)));
      return ids;
    }
    if (item.integer() >= 0) ids.push_back(static_cast<std::int32_t>(item.integer()));
  }
  return ids;
}

std::vector<std::string> ConfigReader::layer_types(std::int64_t layers) {
  std::vector<std::string> types;
  const Json* member = find("layer_types");
  if (!member) return types;
  if (!member->is_array() || static_cast<std::int64_t>(member->array().size()) != layers) {
    fail(Errc::bad_input, cat("\"layer_types\" must be a list of num_hidden_layers ", layers,
                              " names, found ", quote(member->dump(), 40)));
    return types;
  }
  for (const Json& type : member->array()) {
    if (type != Json("full_attention") && type != Json("sliding_attention"))
      fail(Errc::unsupported, cat("\"layer_types\" has ", quote(type.dump(), 40),
                                  " (known: full_attention, sliding_attention)"));
    types.push_back(type.is_string() ? type.string() : "");
  }
  return types;
}

std::vector<std::int64_t> ConfigReader::layer_numbers(std::string_view key, std::int64_t layers) {
  std::vector<std::int64_t> numbers;
  const Json* member = find(key);
  if (!member) return numbers;
  for (const Json& item : member->is_array() ? member->array() : Json::Array{*member}) {
    if (!item.is_integer() || item.integer() < 0 || item.integer() >= layers) {
      fail(Errc::bad_input, cat("\"", key, "\" must be a list of layers from 0 to ", layers - 1,
                                ", found ", quote(item.dump(), 40)));
      return numbers;
    }
    numbers.push_back(item.integer());
  }
  return numbers;
}

void ConfigReader::reject(std::string_view key, const Json& value) {
  fail(Errc::unsupported,
       cat("\"", key, "\": ", quote(value.dump(), 40),
           " is not supported for this architecture and would change the results"));
}

void ConfigReader::reject_flag(std::string_view key) {
  if (const Json* value = find(key); value && *value == Json(true)) reject(key, *value);
}

void ConfigReader::reject_unsupported(const Keys& known) {
  const auto unknown = [&](std::string_view key) {
    return std::ranges::find(known, key) == known.end() ? find(key) : nullptr;
  };
  for (const auto key : present)
    if (const Json* value = unknown(key); value && !has_no_effect(config_, key, *value))
      reject(key, *value);
  for (const auto key : off)
    if (unknown(key)) reject_flag(key);
  for (const auto key : one)
    if (const Json* value = unknown(key); value && *value != Json(1) && *value != Json(1.0))
      reject(key, *value);
  for (const auto key : zero)
    if (const Json* value = unknown(key); value && *value != Json(0) && *value != Json(0.0))
      reject(key, *value);
}

}  // namespace troupe::engine::models
