// Seed-OSS (ByteDance Seed Team 2025): a Llama with flags of their own for the biases of queries,
// keys and values, and of the attention's output.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_seed_oss(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"attention_dropout", "residual_dropout"});
  read_sizes(in, spec, {.default_positions = 524288, .default_head_size = 128});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = in.flag("attention_bias", true);
  spec.output_bias = in.flag("attention_out_bias", false);
  spec.mlp_bias = in.flag("mlp_bias", false);
  read_rotary(in, spec);
}

}  // namespace troupe::engine::models
