// Llama (Touvron et al. 2023; Dubey et al. 2024): RMSNorm before each part, rotary positions,
// grouped heads, a gated MLP.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_llama(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_sizes(in, spec);
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.mlp_bias = in.flag("mlp_bias", false);
  read_rotary(in, spec);
}

}  // namespace troupe::engine::models
