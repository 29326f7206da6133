// StarCoder2 (Lozhkov et al. 2024, arXiv:2402.19173): LayerNorm, biases, a plain MLP, rotary
// positions, a window. The dropout of config.json is not applied.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_starcoder2(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported(
      {"sliding_window", "attention_dropout", "residual_dropout", "embedding_dropout"});
  read_sizes(
      in, spec,
      {.eps = {"norm_epsilon"}, .default_positions = 4096, .default_eps = 1e-5, .tied = true});
  spec.activation = read_activation(in, {"hidden_act"}, "gelu_pytorch_tanh");
  spec.attention_bias = spec.output_bias = spec.mlp_bias = in.flag("use_bias", true);
  spec.layer_norm = spec.norm_bias = true;
  spec.gated = false;
  read_rotary(in, spec);
  read_window(in, spec);
}

Storage store_starcoder2(const DecoderSpec&) {
  return {.modules = {{"mlp.up_proj", "mlp.c_fc"}, {"mlp.down_proj", "mlp.c_proj"}}};
}

}  // namespace troupe::engine::models
