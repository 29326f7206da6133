// Hunyuan V1 (Tencent 2025): a Llama with norms over heads after the rotary embedding. Its mixture
// has experts and a shared expert, each as wide as the MLP, in every layer.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

// "dynamic" with an "alpha" stretches the base by a constant; lengths have no effect.
bool read_alpha(ConfigReader& in, DecoderSpec& spec) {
  const Json *scaling = in.find("rope_scaling"), *parameters = in.find("rope_parameters");
  const Json* found = scaling ? scaling : parameters;
  const Json* alpha = found && found->is_object() ? found->find("alpha") : nullptr;
  if (!alpha || alpha->is_null()) return false;
  ConfigReader inner = in.inside(*found);
  const double stretch = inner.positive({"alpha"});
  const std::string type = inner.text({"rope_type", "type"}, "dynamic");
  const double theta = inner.positive({"rope_theta"}, in.positive({"rope_theta"}, 10000));
  if (type != "dynamic" || spec.head_size < 4)
    inner.fail(Errc::unsupported,
               "\"alpha\" is known for rope type \"dynamic\" and heads of 4 or more channels");
  in.take(inner);
  const double power = spec.head_size / static_cast<double>(std::max(1, spec.head_size - 2));
  const Json plain(Json::Object{{"rope_theta", Json(theta * std::pow(stretch, power))}});
  spec.rotary = {read_rotary_table(in, plain, spec, {})};
  return true;
}

}  // namespace

void read_hunyuan(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"use_qk_norm", "num_experts"});
  in.reject_flag("use_cla");
  read_sizes(in, spec, {.head_size = {"head_dim", "attention_head_dim"}, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.rotated_head_norms = in.flag("use_qk_norm", true);
  if (!read_alpha(in, spec)) read_rotary(in, spec);
}

void read_hunyuan_moe(ConfigReader& in, DecoderSpec& spec) {
  read_hunyuan(in, spec);
  in.reject_flag("use_mixed_mlp_moe");
  for (const auto& [key, supported] :
       {std::pair{"num_shared_expert", 1}, {"moe_layer_num_skipped", 0}})
    if (in.size({key}, 0, 4096, supported) != supported)
      in.fail(Errc::unsupported, cat("\"", key, "\" must be ", supported));
  ExpertsSpec& experts = read_experts(
      in, spec, {.chosen = {"moe_topk"}, .inner = {}, .default_count = 1, .default_chosen = 1});
  if (in.size({"moe_intermediate_size"}, 1, std::int64_t{1} << 20, spec.inner) != spec.inner)
    in.fail(Errc::unsupported, "\"moe_intermediate_size\" must be that of the MLP");
  experts.router.renormalize = ops::Renormalize::sum;
  experts.shared_inner = spec.inner;
}

Storage store_hunyuan_moe(const DecoderSpec& spec) {
  Storage out = store_hunyuan(spec);
  out.modules.emplace_back("mlp.gate", "mlp.gate.wg");
  for (const char* name : {"gate_proj", "up_proj", "down_proj"})
    out.modules.emplace_back(cat("mlp.shared_experts.", name), cat("mlp.shared_mlp.", name));
  return out;
}

Storage store_hunyuan(const DecoderSpec&) {
  return {.modules = {{"self_attn.q_norm", "self_attn.query_layernorm"},
                      {"self_attn.k_norm", "self_attn.key_layernorm"}}};
}

}  // namespace troupe::engine::models
