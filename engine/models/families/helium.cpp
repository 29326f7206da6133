// Helium (Kyutai 2025): a Llama with interleaved rotary pairs and a small epsilon.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_helium(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_sizes(in, spec, {.default_positions = 4096, .default_head_size = 128, .default_eps = 1e-8});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = in.flag("attention_bias", false);
  spec.mlp_bias = in.flag("mlp_bias", false);
  read_rotary(in, spec, {.theta = 100000, .interleaved = true});
}

}  // namespace troupe::engine::models
