// OLMo 2 (2025, arXiv:2501.00656): norms after attention and MLP, and over all of a row's queries
// and keys.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_olmo2(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  in.reject_flag("mlp_bias");
  read_sizes(in, spec, {.default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.norm_placement = NormPlacement::after;
  spec.width_norms = true;
  read_rotary(in, spec);
}

Storage store_olmo2() {
  return {.modules = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                      {"post_mlp_layernorm", "post_feedforward_layernorm"}}};
}

}  // namespace troupe::engine::models
