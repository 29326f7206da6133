// GLM (GLM-4-9B as transformers has it) and GLM-4 (0414): rotary positions on half of a head's
// channels, in interleaved pairs; GLM-4 also has norms after attention and MLP. Team GLM 2024,
// arXiv:2406.12793.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_glm(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"partial_rotary_factor"});
  read_sizes(in, spec,
             {.default_positions = 131072, .default_head_size = 128, .default_eps = 1.5625e-7});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = in.flag("attention_bias", true);
  read_rotary(in, spec, {.partial = 0.5, .may_be_partial = true, .interleaved = true});
}

void read_glm4(ConfigReader& in, DecoderSpec& spec) {
  read_glm(in, spec);
  spec.norm_placement = NormPlacement::both;
}

Storage store_glm() {
  return {.fusions = {{"mlp.gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}}}};
}

}  // namespace troupe::engine::models
