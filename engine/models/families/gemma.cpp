// Gemma (2024, arXiv:2403.08295), Gemma 2 (arXiv:2408.00118), Gemma 3 (2025, arXiv:2503.19786; its
// text model): gains around 1, embeddings times the root of the width. From Gemma 2 on, norms on
// both sides, a window in every other layer, and soft caps. Gemma 3 has norms over heads instead of
// caps, and another rotary base in layers with a window.
#include <cmath>

#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

void read_common(ConfigReader& in, DecoderSpec& spec, std::int64_t positions) {
  read_sizes(in, spec, {.default_positions = positions, .default_head_size = 256, .tied = true});
  spec.norm_offset = 1;
  spec.embedding_multiplier = std::sqrt(static_cast<double>(spec.width));
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.activation = read_activation(in, {"hidden_activation"}, "gelu_pytorch_tanh");
}

// An absent cap means the family's default, null means none.
double read_cap(ConfigReader& in, const char* key, double absent) {
  const Json* member = in.config().find(key);
  if (member && member->is_null()) return 0;
  return member || absent != 0 ? in.positive({key}, absent) : 0;
}

// Settings common to Gemma 2 and 3. Every `pattern`-th layer has full attention.
void read_later(ConfigReader& in, DecoderSpec& spec, std::int64_t pattern, double attention_cap,
                double logit_cap) {
  spec.norm_placement = NormPlacement::both;
  spec.attention_scale = 1 / std::sqrt(in.positive({"query_pre_attn_scalar"}, 256));
  spec.attention_softcap = read_cap(in, "attn_logit_softcapping", attention_cap);
  spec.logit_softcap = read_cap(in, "final_logit_softcapping", logit_cap);
  read_windows(in, spec, in.size({"sliding_window"}, 1, 1 << 28, 4096), is_no_multiple, pattern);
}

// Version 4 has one base, and another for windows.
Json local_parameters(const ConfigReader& in) {
  const Json* base = in.find("rope_local_base_freq");
  return Json(Json::Object{{"rope_theta", base ? *base : Json(10000.0)}});
}

}  // namespace

void read_gemma(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_common(in, spec, 8192);
  // transformers 5 reads hidden_act alone; 4 read hidden_activation, and took "gelu" of the first
  // files, which have no other key, for the tanh approximation that they mean.
  const bool first_files =
      !in.find("hidden_activation") && in.text({"hidden_act"}, "gelu") == "gelu";
  if (in.find("hidden_act") && !first_files)
    spec.activation = read_activation(in, {"hidden_act"}, "");
  read_rotary(in, spec);
}

void read_gemma2(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"attn_logit_softcapping", "final_logit_softcapping",
                         "query_pre_attn_scalar", "sliding_window", "layer_types"});
  read_common(in, spec, 8192);
  read_later(in, spec, 2, 50, 30);
  read_rotary(in, spec);
}

void read_gemma3(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"attn_logit_softcapping", "final_logit_softcapping",
                         "query_pre_attn_scalar", "sliding_window", "layer_types",
                         "rope_local_base_freq"});
  read_common(in, spec, 131072);
  read_later(in, spec, in.size({"sliding_window_pattern", "_sliding_window_pattern"}, 1, 4096, 6),
             0, 0);
  spec.head_norms = true;
  read_rotary_by_layer(in, spec, {.theta = 1e6}, local_parameters(in), {.theta = 1e4});
}

Storage store_gemma2(const DecoderSpec&) {
  return {.modules = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                      {"post_attention_layernorm", "pre_feedforward_layernorm"},
                      {"post_mlp_layernorm", "post_feedforward_layernorm"}}};
}

}  // namespace troupe::engine::models
