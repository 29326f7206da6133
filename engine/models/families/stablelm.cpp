// StableLM 2 and 3B (Stability AI 2023, 2024, arXiv:2402.17834): a Llama with LayerNorm and rotary
// positions on a quarter of a head's channels; optionally attention and MLP side by side.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_stablelm(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"use_parallel_residual", "partial_rotary_factor"});
  read_sizes(
      in, spec,
      {.eps = {"layer_norm_eps"}, .head_size = {}, .default_positions = 4096, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = in.flag("use_qkv_bias", false);
  spec.layer_norm = spec.norm_bias = true;
  if (in.flag("use_parallel_residual", false)) spec.norm_placement = NormPlacement::shared;
  read_rotary(in, spec, {.partial = 0.25, .may_be_partial = true});
}

}  // namespace troupe::engine::models
