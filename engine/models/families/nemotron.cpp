// Nemotron 4 and Minitron (Parmar et al. 2024, arXiv:2402.16819): LayerNorm with gains around 1, a
// plain MLP with squared ReLU, rotary positions on half of a head's channels.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_nemotron(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"partial_rotary_factor"});
  read_sizes(in, spec, {.eps = {"norm_eps"}, .default_positions = 4096, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "relu2");
  spec.layer_norm = spec.norm_bias = true;
  spec.norm_offset = 1;
  spec.gated = false;
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.mlp_bias = in.flag("mlp_bias", false);
  read_rotary(in, spec, {.partial = 0.5, .may_be_partial = true});
}

}  // namespace troupe::engine::models
