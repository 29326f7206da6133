// InternLM3 (InternLM Team 2025): a Llama whose biases of queries, keys and values have a flag of
// their own.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_internlm3(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_sizes(in, spec, {.default_positions = 32768});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = in.flag("qkv_bias", false);
  spec.output_bias = spec.mlp_bias = in.flag("bias", false);
  read_rotary(in, spec);
}

}  // namespace troupe::engine::models
