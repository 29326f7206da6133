#include "engine/models/spec.h"

#include <algorithm>
#include <unordered_map>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

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

std::optional<FusedExperts> fused_experts(std::string_view module, const DecoderSpec& spec) {
  if (!spec.experts) return std::nullopt;
  if (module.ends_with(".mlp.experts.gate_up_proj"))
    return FusedExperts{2 * spec.experts->inner, spec.width};
  if (module.ends_with(".mlp.experts.down_proj"))
    return FusedExperts{spec.width, spec.experts->inner};
  return std::nullopt;
}

std::vector<nn::ParameterSpec> fused_lora_tensors(const LoraTarget& target, const DecoderSpec& spec,
                                                  const FusedExperts& of) {
  const std::int64_t experts = spec.experts->router.experts;
  return {{cat(target.module, lora_a), Shape{experts * target.rank, of.inputs}, {}, true, true},
          {cat(target.module, lora_b), Shape{experts, of.outputs * target.rank}, {}, true, true}};
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
  std::unordered_map<std::string, std::size_t> numbers;  // experts may be ten thousands
  for (std::size_t i = 0; i < list.size(); ++i) numbers.emplace(list[i].name, i);
  for (const auto& target : spec.lora->targets) {
    if (const auto fused = fused_experts(target.module, spec)) {
      for (auto& wanted : fused_lora_tensors(target, spec, *fused))
        list.push_back(std::move(wanted));
      continue;
    }
    auto base = numbers.find(target.module + ".weight");
    if (base == numbers.end() && spec.tied && target.module == "lm_head")
      base = numbers.find("model.embed_tokens.weight");
    check(base != numbers.end(), cat("add_lora: no module ", target.module));
    for (auto& wanted :
         lora_tensors(target, nn::ParameterSpec(list[base->second]), spec.lora->dora, first_rank))
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
  void mlp(const std::string& name, std::int64_t inner) const;
  void experts(const std::string& mlp) const;
  void block(std::int64_t index) const;
};

void Lister::attention(const std::string& layer) const {
  const std::int64_t size = spec.head_size, q = spec.heads * size, kv = spec.kv_heads * size;
  if (spec.latent) return latent(layer + "self_attn.");
  linear(layer + "self_attn.q_proj", q, spec.width, spec.attention_bias);
  linear(layer + "self_attn.k_proj", kv, spec.width, spec.attention_bias);
  linear(layer + "self_attn.v_proj", kv, spec.width, spec.attention_bias);
  linear(layer + "self_attn.o_proj", spec.width, q, spec.output_bias);
  if (!spec.head_norms && !spec.rotated_head_norms && !spec.width_norms) return;
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

void Lister::mlp(const std::string& name, std::int64_t inner) const {
  if (spec.gated) linear(name + "gate_proj", inner, spec.width, spec.mlp_bias);
  linear(name + "up_proj", inner, spec.width, spec.mlp_bias);
  linear(name + "down_proj", spec.width, inner, spec.mlp_bias);
}

// The matrices of all experts of one projection lie one after the other, as one stacked tensor.
void Lister::experts(const std::string& mlp) const {
  const ExpertsSpec& of = *spec.experts;
  linear(mlp + "gate", of.router.experts, spec.width, false);
  if (of.choice_bias)
    list.push_back({mlp + "gate.e_score_correction_bias", Shape{of.router.experts}});
  for (const std::string_view name : {"gate_proj", "up_proj", "down_proj"})
    for (std::int64_t e = 0; e < of.router.experts; ++e) {
      const bool down = name == "down_proj";
      linear(cat(mlp, "experts.", e, ".", name), down ? spec.width : of.inner,
             down ? of.inner : spec.width, false);
    }
  if (of.shared_inner > 0) this->mlp(mlp + "shared_experts.", of.shared_inner);
  if (of.shared_gate) linear(mlp + "shared_expert_gate", 1, spec.width, false);
}

void Lister::block(std::int64_t index) const {
  const std::string layer = cat("model.layers.", index, ".");
  const bool before = spec.norm_placement != NormPlacement::after;
  const bool shared = spec.norm_placement == NormPlacement::shared;
  const bool after =
      spec.norm_placement == NormPlacement::after || spec.norm_placement == NormPlacement::both;
  if (before) norm(layer + "input_layernorm", spec.width);
  attention(layer);
  if (after) norm(layer + "post_self_attn_layernorm", spec.width);
  if (before && !shared) norm(layer + "post_attention_layernorm", spec.width);
  if (spec.has_experts(index))
    experts(layer + "mlp.");
  else
    mlp(layer + "mlp.", spec.inner);
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
  for (std::int64_t i = 0; i < spec.layers; ++i) all.block(i);
  all.norm("model.norm", spec.width);
  if (spec.labels > 0)
    all.linear("score", spec.labels, spec.width, spec.score_bias);
  else if (!spec.tied)
    list.push_back({"lm_head.weight", Shape{spec.vocabulary, spec.width}});
  if (spec.labels == 0 && spec.head_bias) list.push_back({"lm_head.bias", Shape{spec.vocabulary}});
  add_lora(spec, list, true);
  return list;
}

std::int64_t DecoderSpec::parameter_count() const {
  // Layers of a kind are equal: the count must not take longer for a file that claims thousands of
  // them.
  const auto count = [this](std::int64_t layers_counted, bool sparse) {
    DecoderSpec one = *this;
    one.lora.reset();
    one.layers = layers_counted;
    if (one.experts) one.experts->sparse = {sparse};
    std::int64_t sum = 0;
    for (const auto& wanted : parameter_list(one)) sum += wanted.shape.count();
    return sum;
  };
  const std::int64_t outside = count(0, false), sparse = expert_layers();
  return outside + (layers - sparse) * (count(1, false) - outside) +
         (sparse > 0 ? sparse * (count(1, true) - outside) : 0);
}

std::int64_t DecoderSpec::active_parameter_count() const {
  if (!experts) return parameter_count();
  const std::int64_t unused = experts->router.experts - experts->router.chosen;
  return parameter_count() - expert_layers() * unused * 3 * experts->inner * width;
}

std::int64_t DecoderSpec::expert_layers() const {
  if (!experts) return 0;
  return experts->sparse.empty() ? layers : std::ranges::count(experts->sparse, true);
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
