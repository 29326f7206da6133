// Arcee (AFM 4.5B, 2025): a Llama with a plain MLP and squared ReLU.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_arcee(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_sizes(in, spec, {.default_positions = 4096, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "relu2");
  spec.gated = false;
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.mlp_bias = in.flag("mlp_bias", false);
  read_rotary(in, spec);
}

}  // namespace troupe::engine::models
