#include "engine/models/spec.h"

#include <array>
#include <cmath>

#include "engine/base/text.h"
#include "engine/models/family.h"
#include "engine/models/head_config.h"

namespace troupe::engine::models {
namespace {

constexpr std::array families = {
    Family{"LlamaForCausalLM", "llama", read_llama},
    Family{"Qwen2ForCausalLM", "qwen2", read_qwen2},
    Family{"Qwen3ForCausalLM", "qwen3", read_qwen3},
};

std::string known_architectures() {
  std::vector<std::string> names;
  for (const auto& family : families) names.emplace_back(family.architecture);
  return join(names, ", ");
}

Result<std::vector<std::int32_t>> token_ids(const Json& config, std::string_view key, const std::string& where, std::int64_t vocabulary) {
  std::vector<std::int32_t> ids;
  const Json* member = config.find(key);
  if (!member || member->is_null()) return ids;
  const Json::Array items = member->is_array() ? member->array() : Json::Array{*member};
  for (const auto& item : items) {
    if (!item.is_integer() || item.integer() >= vocabulary || item.integer() < -1)
      return fail(Errc::bad_input,
                  cat(where, ": \"", key, "\" must be a token id below vocab_size ", vocabulary, ", found ", quote(item.dump(), 40)));
    if (item.integer() >= 0) ids.push_back(static_cast<std::int32_t>(item.integer()));
  }
  return ids;
}

}  // namespace

Result<std::int64_t> size_of(const Json& config, std::string_view key, const std::string& where, std::int64_t low, std::int64_t high,
                             std::optional<std::int64_t> fallback) {
  const Json* member = config.find(key);
  if ((!member || member->is_null()) && fallback) return *fallback;
  auto value = get_integer(config, key, where);
  if (value && (*value < low || *value > high))
    return fail(Errc::bad_input, cat(where, ": \"", key, "\" must be between ", low, " and ", high, ", found ", *value));
  return value;
}

Result<double> number_of(const Json& config, std::string_view key, const std::string& where, std::optional<double> fallback) {
  const Json* member = config.find(key);
  if ((!member || member->is_null()) && fallback) return *fallback;
  return get_number(config, key, where);
}

Result<bool> flag_of(const Json& config, std::string_view key, const std::string& where, bool fallback) {
  const Json* member = config.find(key);
  if (!member || member->is_null()) return fallback;
  return get_bool(config, key, where);
}

Result<> refuse_foreign_fields(const Json& config, const std::string& where) {
  constexpr std::array present = {
      "quantization_config",     "num_experts", "num_local_experts", "n_routed_experts", "attn_logit_softcapping",
      "final_logit_softcapping", "q_lora_rank", "kv_lora_rank"};
  constexpr std::array off = {"use_sliding_window", "rope_interleaved", "qk_layernorm", "use_qk_norm", "use_parallel_residual", "alibi"};
  constexpr std::array one = {"partial_rotary_factor", "logits_scaling", "embedding_multiplier",
                              "residual_multiplier",   "rotary_pct",     "logit_scale"};
  constexpr std::array zero = {"attention_dropout", "hidden_dropout", "residual_dropout", "embedding_dropout"};
  const auto refuse = [&](const char* key, const Json& value) {
    return fail(Errc::unsupported,
                cat(where, ": \"", key, "\": ", quote(value.dump(), 40), " would change the numbers, and this family does not have it"));
  };
  for (const char* key : present)
    if (const Json* value = config.find(key); value && !value->is_null()) return refuse(key, *value);
  for (const char* key : off)
    if (const Json* value = config.find(key); value && *value == Json(true)) return refuse(key, *value);
  for (const char* key : one)
    if (const Json* value = config.find(key); value && value->is_number() && value->number() != 1) return refuse(key, *value);
  for (const char* key : zero)
    if (const Json* value = config.find(key); value && value->is_number() && value->number() != 0) return refuse(key, *value);
  return {};
}

Result<DecoderSpec> read_sizes(const Json& config, const std::string& where) {
  constexpr std::int64_t limit = std::int64_t{1} << 20;
  DecoderSpec spec;
  const auto vocabulary = size_of(config, "vocab_size", where, 1, std::int64_t{1} << 24),
             width = size_of(config, "hidden_size", where, 1, limit), layers = size_of(config, "num_hidden_layers", where, 1, 4096),
             heads = size_of(config, "num_attention_heads", where, 1, 65536), inner = size_of(config, "intermediate_size", where, 1, limit),
             positions = size_of(config, "max_position_embeddings", where, 1, 1 << 28, 2048);
  for (const auto* value : {&vocabulary, &width, &layers, &heads, &inner, &positions})
    if (!*value) return fail(value->error());
  const auto kv_heads = size_of(config, "num_key_value_heads", where, 1, *heads, *heads);
  if (!kv_heads) return fail(kv_heads.error());
  if (*heads % *kv_heads)
    return fail(Errc::bad_input, cat(where, ": num_attention_heads ", *heads, " is no multiple of num_key_value_heads ", *kv_heads));
  const Json* own_size = config.find("head_dim");
  if ((!own_size || own_size->is_null()) && *width % *heads)
    return fail(Errc::bad_input,
                cat(where, ": hidden_size ", *width, " is no multiple of num_attention_heads ", *heads, ", and there is no head_dim"));
  const auto head_size = size_of(config, "head_dim", where, 2, 1024, *width / *heads);
  if (!head_size) return fail(head_size.error());
  if (*head_size % 2) return fail(Errc::bad_input, cat(where, ": the head size must be even for rotary positions, found ", *head_size));
  spec.vocabulary = *vocabulary, spec.width = *width, spec.layers = *layers, spec.inner = *inner, spec.max_positions = *positions;
  spec.heads = static_cast<int>(*heads), spec.kv_heads = static_cast<int>(*kv_heads), spec.head_size = static_cast<int>(*head_size);

  const auto eos = token_ids(config, "eos_token_id", where, *vocabulary), bos = token_ids(config, "bos_token_id", where, *vocabulary),
             pad = token_ids(config, "pad_token_id", where, *vocabulary);
  for (const auto* ids : {&eos, &bos, &pad})
    if (!*ids) return fail(ids->error());
  spec.eos_ids = *eos;
  spec.bos_id = bos->empty() ? -1 : bos->front();
  spec.pad_id = pad->empty() ? -1 : pad->front();
  return spec;
}

Result<DecoderSpec> read_spec(const Json& config, const std::string& where) {
  if (!config.is_object()) return fail(Errc::bad_input, cat(where, ": expected a JSON object, found ", config.type_name()));
  std::string architecture, model_type;
  if (const Json* names = config.find("architectures");
      names && names->is_array() && !names->array().empty() && names->array()[0].is_string())
    architecture = names->array()[0].string();
  if (const Json* type = config.find("model_type"); type && type->is_string()) model_type = type->string();
  for (const auto& family : families) {
    if (architecture.empty() ? model_type != family.model_type : causal_architecture(architecture) != family.architecture) continue;
    auto spec = family.read(config, where);
    if (!spec) return spec;
    spec->architecture = family.architecture;
    if (auto head = read_head(config, where, *spec); !head) return fail(head.error());
    return spec;
  }
  return fail(Errc::unsupported, cat(where, ": the architecture ", quote(architecture.empty() ? model_type : architecture),
                                     " is not supported (known: ", known_architectures(),
                                     ", and each as ForSequenceClassification and ForTokenClassification)"));
}

std::vector<nn::Parameters::Wanted> parameter_list(const DecoderSpec& spec) {
  std::vector<nn::Parameters::Wanted> list;
  const std::int64_t q = std::int64_t{spec.heads} * spec.head_size, kv = std::int64_t{spec.kv_heads} * spec.head_size;
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    list.push_back({name + ".weight", Shape{out, in}});
    if (bias) list.push_back({name + ".bias", Shape{out}});
  };
  list.push_back({"model.embed_tokens.weight", Shape{spec.vocabulary, spec.width}});
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    const std::string layer = cat("model.layers.", i, ".");
    list.push_back({layer + "input_layernorm.weight", Shape{spec.width}});
    linear(layer + "self_attn.q_proj", q, spec.width, spec.attention_bias);
    linear(layer + "self_attn.k_proj", kv, spec.width, spec.attention_bias);
    linear(layer + "self_attn.v_proj", kv, spec.width, spec.attention_bias);
    linear(layer + "self_attn.o_proj", spec.width, q, spec.output_bias);
    if (spec.head_norms)
      for (const char* norm : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) list.push_back({layer + norm, Shape{spec.head_size}});
    list.push_back({layer + "post_attention_layernorm.weight", Shape{spec.width}});
    linear(layer + "mlp.gate_proj", spec.inner, spec.width, spec.mlp_bias);
    linear(layer + "mlp.up_proj", spec.inner, spec.width, spec.mlp_bias);
    linear(layer + "mlp.down_proj", spec.width, spec.inner, spec.mlp_bias);
  }
  list.push_back({"model.norm.weight", Shape{spec.width}});
  if (spec.labels > 0)
    linear("score", spec.labels, spec.width, spec.score_bias);
  else if (!spec.tied)
    list.push_back({"lm_head.weight", Shape{spec.vocabulary, spec.width}});
  add_lora(spec, list, true);
  return list;
}

std::int64_t DecoderSpec::parameter_count() const {
  const std::int64_t q = std::int64_t{heads} * head_size, kv = std::int64_t{kv_heads} * head_size;
  std::int64_t layer = width * (2 * q + 2 * kv) + 3 * width * inner + 2 * width;
  if (attention_bias) layer += q + 2 * kv;
  if (output_bias) layer += width;
  if (mlp_bias) layer += 2 * inner + width;
  if (head_norms) layer += 2 * head_size;
  const std::int64_t head = labels > 0 ? labels * (width + (score_bias ? 1 : 0)) : tied ? 0 : vocabulary * width;
  return vocabulary * width + layers * layer + width + head;
}

}  // namespace troupe::engine::models
