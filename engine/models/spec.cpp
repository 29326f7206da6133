#include "engine/models/spec.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::models {

std::vector<nn::ParameterSpec> lora_tensors(const LoraTarget& target, const nn::ParameterSpec& base,
                                            bool dora, bool first_rank) {
  const std::int64_t rank = target.rank, out = base.shape[0], in = base.shape[1];
  parallel::Shard whole{.first = first_rank}, rows = whole, shared = whole, columns = whole;
  if (base.shard.axis == 0) {  // A is replicated; its gradient is summed over the ranks
    rows = base.shard;
    shared = {0, 0, rank, rank, true, first_rank};
  } else if (base.shard.axis == 1) {
    columns = base.shard;
  }
  std::vector<nn::ParameterSpec> list{
      {cat(target.module, lora_a), Shape{rank, in}, base.shard.axis == 0 ? shared : columns, true,
       true},
      {cat(target.module, lora_b), Shape{out, rank}, rows, true, true}};
  if (dora) list.push_back({cat(target.module, lora_magnitude), Shape{out}, rows, true, true});
  return list;
}

void add_lora(const DecoderSpec& spec, std::vector<nn::ParameterSpec>& list, bool first_rank) {
  if (!spec.lora) return;
  const auto saved = [&](const std::string& name) {
    return std::ranges::any_of(spec.lora->saved, [&](const std::string& module) {
      return name.starts_with(module + ".");
    });
  };
  for (auto& wanted : list) wanted.trainable = saved(wanted.name);
  std::ranges::stable_partition(list, [](const auto& wanted) { return !wanted.trainable; });
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(list, [&](const auto& wanted) { return wanted.name == name; });
  };
  for (const auto& target : spec.lora->targets) {
    auto base = named(target.module + ".weight");
    if (base == list.end() && spec.tied && target.module == "lm_head")
      base = named("model.embed_tokens.weight");
    check(base != list.end(), cat("add_lora: no module ", target.module));
    for (auto& wanted : lora_tensors(target, nn::ParameterSpec(*base), spec.lora->dora, first_rank))
      list.push_back(std::move(wanted));
  }
}

namespace {

/// Appends weights to a list.
struct Lister {
  const DecoderSpec& spec;
  std::vector<nn::ParameterSpec>& list;

  void norm(const std::string& name, std::int64_t width) const {
    list.push_back({name + ".weight", Shape{width}});
    if (spec.norm_bias) list.push_back({name + ".bias", Shape{width}});
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias) const {
    list.push_back({name + ".weight", Shape{out, in}});
    if (bias) list.push_back({name + ".bias", Shape{out}});
  }
  void attention(const std::string& layer) const;
  void latent(const std::string& attention) const;
  void mlp(const std::string& layer) const;
  void block(const std::string& layer) const;
};

void Lister::attention(const std::string& layer) const {
  const std::int64_t size = spec.head_size, q = spec.heads * size, kv = spec.kv_heads * size;
  if (spec.latent) return latent(layer + "self_attn.");
  linear(layer + "self_attn.q_proj", q, spec.width, spec.attention_bias);
  linear(layer + "self_attn.k_proj", kv, spec.width, spec.attention_bias);
  linear(layer + "self_attn.v_proj", kv, spec.width, spec.attention_bias);
  linear(layer + "self_attn.o_proj", spec.width, q, spec.output_bias);
  if (!spec.head_norms && !spec.width_norms) return;
  list.push_back({layer + "self_attn.q_norm.weight", Shape{spec.width_norms ? q : size}});
  list.push_back({layer + "self_attn.k_norm.weight", Shape{spec.width_norms ? kv : size}});
}

void Lister::latent(const std::string& attention) const {
  const auto& [query_rank, key_rank, rotary, value_size, eps] = *spec.latent;
  const std::int64_t heads = spec.heads, plain = spec.head_size - rotary;
  linear(attention + "q_a_proj", query_rank, spec.width, spec.attention_bias);
  list.push_back({attention + "q_a_layernorm.weight", Shape{query_rank}});
  linear(attention + "q_b_proj", heads * spec.head_size, query_rank, false);
  linear(attention + "kv_a_proj_with_mqa", key_rank + rotary, spec.width, spec.attention_bias);
  list.push_back({attention + "kv_a_layernorm.weight", Shape{key_rank}});
  linear(attention + "kv_b_proj", heads * (plain + value_size), key_rank, false);
  linear(attention + "o_proj", spec.width, heads * value_size, spec.output_bias);
}

void Lister::mlp(const std::string& layer) const {
  if (spec.gated) linear(layer + "mlp.gate_proj", spec.inner, spec.width, spec.mlp_bias);
  linear(layer + "mlp.up_proj", spec.inner, spec.width, spec.mlp_bias);
  linear(layer + "mlp.down_proj", spec.width, spec.inner, spec.mlp_bias);
}

void Lister::block(const std::string& layer) const {
  const bool before = spec.norm_placement != NormPlacement::after;
  const bool shared = spec.norm_placement == NormPlacement::shared;
  const bool after =
      spec.norm_placement == NormPlacement::after || spec.norm_placement == NormPlacement::both;
  if (before) norm(layer + "input_layernorm", spec.width);
  attention(layer);
  if (after) norm(layer + "post_self_attn_layernorm", spec.width);
  if (before && !shared) norm(layer + "post_attention_layernorm", spec.width);
  mlp(layer);
  if (after) norm(layer + "post_mlp_layernorm", spec.width);
}

}  // namespace

std::vector<nn::ParameterSpec> parameter_list(const DecoderSpec& spec) {
  std::vector<nn::ParameterSpec> list;
  const Lister all{spec, list};
  list.push_back({"model.embed_tokens.weight", Shape{spec.vocabulary, spec.width}});
  if (spec.learned_positions > 0)
    list.push_back({"model.embed_positions.weight", Shape{spec.learned_positions, spec.width}});
  if (spec.embedding_norm) all.norm("model.embed_norm", spec.width);
  for (std::int64_t i = 0; i < spec.layers; ++i) all.block(cat("model.layers.", i, "."));
  all.norm("model.norm", spec.width);
  if (spec.labels > 0)
    all.linear("score", spec.labels, spec.width, spec.score_bias);
  else if (!spec.tied)
    list.push_back({"lm_head.weight", Shape{spec.vocabulary, spec.width}});
  add_lora(spec, list, true);
  return list;
}

std::int64_t DecoderSpec::parameter_count() const {
  // Layers are equal: the count must not take longer for a file that claims thousands of them.
  DecoderSpec one = *this;
  one.lora.reset();
  std::int64_t counts[2] = {0, 0};
  for (std::int64_t layers_counted = 0; layers_counted < 2; ++layers_counted) {
    one.layers = layers_counted;
    for (const auto& wanted : parameter_list(one)) counts[layers_counted] += wanted.shape.count();
  }
  return counts[0] + layers * (counts[1] - counts[0]);
}

bool DecoderSpec::keys_depend_on_length() const {
  return std::ranges::any_of(rotary,
                             [](const nn::RotarySpec& table) { return table.original_length > 0; });
}

bool DecoderSpec::keys_change_at(std::int64_t length) const {
  return std::ranges::any_of(rotary, [&](const nn::RotarySpec& table) {
    return table.frequency_set(length) != table.frequency_set(length - 1);
  });
}

}  // namespace troupe::engine::models
