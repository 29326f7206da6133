#include "engine/models/module_builder.h"

#include <cmath>

#include "engine/base/text/text.h"

namespace troupe::engine::models {

std::unordered_map<std::string_view, std::size_t> ModuleBuilder::numbers_of(
    const DecoderSpec& spec) {
  std::unordered_map<std::string_view, std::size_t> out;
  if (spec.lora)
    for (std::size_t i = 0; i < spec.lora->targets.size(); ++i)
      out.emplace(spec.lora->targets[i].module, i);
  return out;
}

nn::Lora ModuleBuilder::lora(const std::string& name) const {
  const auto found = adapted.find(name);
  if (found == adapted.end()) return {};
  return {.a = &parameters.at(cat(name, lora_a)),
          .b = &parameters.at(cat(name, lora_b)),
          .magnitude = parameters.find(cat(name, lora_magnitude)),
          .scale = static_cast<float>(spec.lora->targets[found->second].scale),
          .dropout = spec.lora->dropout,
          .module = static_cast<std::uint32_t>(found->second),
          .enabled = &adapter_on};
}

template <class Projections>
nn::Attention<Projections> ModuleBuilder::attention_over(Projections projections,
                                                         const std::string& layer, int index,
                                                         int place) const {
  const LayerSpec layer_spec = spec.layer_at(index);
  const double scale = spec.attention_scale != 0
                           ? spec.attention_scale
                           : 1 / std::sqrt(static_cast<double>(spec.head_size));
  const bool rotates =
      layer_spec.rotary >= 0 && static_cast<std::size_t>(layer_spec.rotary) < rotary.size();
  return {.projections = std::move(projections),
          .o = linear(layer + "self_attn.o_proj", tp),
          .shape = ops::AttentionShape{.heads = static_cast<int>(split.heads.size()),
                                       .kv_heads = static_cast<int>(split.kv_heads.size()),
                                       .head_size = spec.head_size,
                                       .scale = static_cast<float>(scale),
                                       .softcap = static_cast<float>(spec.attention_softcap),
                                       .window = layer_spec.window,
                                       .alibi_slopes = alibi_slopes(spec, split.heads, scale)},
          .rotary = rotates ? &rotary[static_cast<std::size_t>(layer_spec.rotary)] : nullptr,
          .layer = place,
          .first_head = split.heads.begin,
          .number = static_cast<std::uint32_t>(index),
          .q_norm = rotated_norm(layer + "self_attn.q_norm"),
          .k_norm = rotated_norm(layer + "self_attn.k_norm")};
}

Attention ModuleBuilder::attention(const std::string& layer, int index, int place) const {
  const std::string name = layer + "self_attn.";
  if (spec.latent) return {attention_over(latent(name), layer, index, place)};
  return {attention_over(plain(name), layer, index, place)};
}

nn::PlainProjections ModuleBuilder::plain(const std::string& attention) const {
  return {.q = linear(attention + "q_proj"),
          .k = linear(attention + "k_proj"),
          .v = linear(attention + "v_proj"),
          .q_norm = spec.rotated_head_norms ? nn::Norm() : head_norm(attention + "q_norm"),
          .k_norm = spec.rotated_head_norms ? nn::Norm() : head_norm(attention + "k_norm")};
}

nn::LatentProjections ModuleBuilder::latent(const std::string& attention) const {
  const auto normed = [&](const std::string& name) {
    return nn::Norm{parameters.find(attention + name + ".weight"),
                    static_cast<float>(spec.latent->norm_eps)};
  };
  return nn::LatentProjections({.q_a = linear(attention + "q_a_proj"),
                                .q_b = linear(attention + "q_b_proj"),
                                .kv_a = linear(attention + "kv_a_proj_with_mqa"),
                                .kv_b = linear(attention + "kv_b_proj"),
                                .q_norm = normed("q_a_layernorm"),
                                .kv_norm = normed("kv_a_layernorm")},
                               {.heads = static_cast<int>(split.heads.size()),
                                .plain = spec.head_size - spec.latent->rotary,
                                .rotary = spec.latent->rotary,
                                .value = spec.latent->value_size,
                                .rank = spec.latent->key_rank});
}

namespace {

// Adds an expert's matrices and, where they are trained, their gradients.
void add(const nn::Parameter& a, const nn::Parameter& b, nn::ExpertLora& to) {
  to.a.push_back(a.value);
  to.b.push_back(b.value);
  if (a.grad) to.da.push_back(a.grad);
  if (b.grad) to.db.push_back(b.grad);
}

}  // namespace

// Adapters of all experts' modules have one rank and one scale (adapter/lora_config.cpp).
nn::ExpertLora ModuleBuilder::expert_lora(const std::string& name,
                                          std::string_view projection) const {
  nn::ExpertLora out;
  for (std::int64_t e = 0; e < spec.experts->router.experts; ++e)
    if (const nn::Lora one = lora(cat(name, "experts.", e, ".", projection)); one.a != nullptr) {
      add(*one.a, *one.b, out);
      out.scale = one.scale;
      out.enabled = one.enabled;
    }
  return out;
}

// Of PEFT's target_parameters (FusedExperts).
nn::ExpertLora ModuleBuilder::fused_lora(const std::string& module) const {
  nn::ExpertLora out;
  const nn::Lora all = lora(module);
  if (all.a == nullptr) return out;
  const std::int64_t experts = spec.experts->router.experts,
                     rank = all.a->value.shape()[0] / experts,
                     outputs = all.b->value.shape()[1] / rank;
  for (std::int64_t e = 0; e < experts; ++e) {
    const auto part_of_a = [&](const Tensor& x) { return x.rows(e * rank, (e + 1) * rank); };
    const auto part_of_b = [&](const Tensor& x) { return x.rows(e, e + 1).view({outputs, rank}); };
    out.a.push_back(part_of_a(all.a->value));
    out.b.push_back(part_of_b(all.b->value));
    if (all.a->grad) out.da.push_back(part_of_a(all.a->grad));
    if (all.b->grad) out.db.push_back(part_of_b(all.b->grad));
  }
  out.scale = all.scale;
  out.enabled = all.enabled;
  return out;
}

nn::Mixture ModuleBuilder::mixture(const std::string& name, int index) const {
  const ExpertsSpec& of = *spec.experts;
  const auto projection = [&](std::string_view which) {
    std::vector<const nn::Parameter*> experts;
    for (std::int64_t e = 0; e < of.router.experts; ++e)
      experts.push_back(&parameters.at(cat(name, "experts.", e, ".", which, ".weight")));
    return nn::ExpertProjection(std::move(experts));
  };
  nn::Mixture out{.how = of.router,
                  .router = linear(name + "gate"),
                  .choice_bias = parameters.find(name + "gate.e_score_correction_bias"),
                  .gate = projection("gate_proj"),
                  .up = projection("up_proj"),
                  .down = projection("down_proj"),
                  .activation = spec.activation,
                  .shared = {},
                  .shared_gate = {},
                  .tp = tp,
                  .balance = &balance,
                  .layer = static_cast<std::size_t>(index)};
  out.gate.lora = expert_lora(name, "gate_proj");
  out.up.lora = expert_lora(name, "up_proj");
  out.down.lora = expert_lora(name, "down_proj");
  if (!out.down.lora.enabled) out.down.lora = fused_lora(name + "experts.down_proj");
  out.gate_up = fused_lora(name + "experts.gate_up_proj");
  if (of.shared_inner > 0) out.shared = mlp(name + "shared_experts.");
  if (of.shared_gate) out.shared_gate = linear(name + "shared_expert_gate");
  return out;
}

Block ModuleBuilder::block(int index, int place) const {
  const std::string layer = cat("model.layers.", index, ".");
  const auto multiplier = static_cast<float>(spec.residual_multiplier);
  const nn::Norm first = norm(layer + "input_layernorm");
  const std::uint32_t streams[] = {nn::residual_stream(index, 0), nn::residual_stream(index, 1)};
  if (spec.norm_placement == NormPlacement::shared)
    return {ParallelLayer{{first, {attention(layer, index, place), feed_forward(layer, index)}},
                          multiplier,
                          streams[0]}};
  if (spec.norm_placement == NormPlacement::parallel)
    return {TwoNormLayer{{{first, attention(layer, index, place)},
                          {norm(layer + "post_attention_layernorm"), feed_forward(layer, index)}},
                         multiplier,
                         streams[0]}};
  return {SequentialLayer{
      {{first, {attention(layer, index, place), norm(layer + "post_self_attn_layernorm")}},
       multiplier,
       streams[0]},
      {{norm(layer + "post_attention_layernorm"),
        {feed_forward(layer, index), norm(layer + "post_mlp_layernorm")}},
       multiplier,
       streams[1]}}};
}

}  // namespace troupe::engine::models
