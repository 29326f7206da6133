// Cohere's Command R (2024): one LayerNorm without bias before parallel attention and MLP;
// interleaved rotary pairs; scaled logits. Command R7B and A (2024, 2025; Cohere2): also windows,
// and no positions in layers without one.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

namespace {

void read_command(ConfigReader& in, DecoderSpec& spec, double theta) {
  read_sizes(
      in, spec,
      {.eps = {"layer_norm_eps"}, .default_positions = 8192, .default_eps = 1e-5, .tied = true});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.layer_norm = true;
  spec.norm_placement = NormPlacement::shared;
  spec.logit_scale = in.positive({"logit_scale"}, 0.0625);
  read_rotary(in, spec, {.theta = theta, .interleaved = true});
}

}  // namespace

void read_cohere(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"logit_scale"});
  read_command(in, spec, 500000);
}

void read_cohere2(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"logit_scale", "sliding_window", "layer_types"});
  read_command(in, spec, 10000);
  read_windows(in, spec, in.size({"sliding_window"}, 1, 1 << 28, 4096), is_no_multiple,
               in.size({"sliding_window_pattern"}, 1, 4096, 4));
  for (auto& layer : spec.layer)
    if (layer.window == 0) layer.rotary = -1;
}

}  // namespace troupe::engine::models
