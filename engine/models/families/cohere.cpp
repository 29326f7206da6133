// Cohere's Command R (2024): one LayerNorm without bias before parallel attention and MLP;
// interleaved rotary pairs; scaled logits.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_cohere(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"logit_scale"});
  read_sizes(
      in, spec,
      {.eps = {"layer_norm_eps"}, .default_positions = 8192, .default_eps = 1e-5, .tied = true});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.layer_norm = true;
  spec.norm_placement = NormPlacement::shared;
  spec.logit_scale = in.positive({"logit_scale"}, 0.0625);
  read_rotary(in, spec, {.theta = 500000, .interleaved = true});
}

}  // namespace troupe::engine::models
