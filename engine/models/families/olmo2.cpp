// OLMo 2 (2025, arXiv:2501.00656): norms after attention and MLP, and over all of a row's queries
// and keys. OLMo 3 (2025): also windows in three of four layers, and scaled rotary positions in the
// others only.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

namespace {

void read_olmo(ConfigReader& in, DecoderSpec& spec) {
  in.reject_flag("mlp_bias");
  read_sizes(in, spec, {.default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.norm_placement = NormPlacement::after;
  spec.width_norms = true;
}

// Version 4's file has one base for all layers.
Json sliding_parameters(const ConfigReader& in) {
  const Json* base = in.find("rope_theta");
  return Json(Json::Object{{"rope_theta", base ? *base : Json(500000.0)}});
}

}  // namespace

void read_olmo2(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_olmo(in, spec);
  read_rotary(in, spec);
}

void read_olmo3(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"sliding_window", "layer_types"});
  read_olmo(in, spec);
  read_windows(in, spec, in.size({"sliding_window"}, 1, 1 << 28, 4096), is_no_multiple, 4);
  const RopeStyle style{.theta = 500000};
  read_rotary_by_layer(in, spec, style, sliding_parameters(in), style);
}

Storage store_olmo2(const DecoderSpec&) {
  return {.modules = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                      {"post_mlp_layernorm", "post_feedforward_layernorm"}}};
}

}  // namespace troupe::engine::models
