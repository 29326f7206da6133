// Phi 1, 1.5 and 2 (Gunasekar et al. 2023, arXiv:2306.11644; Li et al. 2023, arXiv:2309.05463): one
// LayerNorm before parallel attention and MLP, biases everywhere, the language head included,
// rotary positions on half of a head's channels.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_phi(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported(
      {"partial_rotary_factor", "attention_dropout", "embd_pdrop", "resid_pdrop"});
  read_sizes(in, spec, {.eps = {"layer_norm_eps"}, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "gelu_new");
  spec.attention_bias = spec.output_bias = spec.mlp_bias = spec.head_bias = true;
  spec.layer_norm = spec.norm_bias = true;
  spec.gated = false;
  spec.norm_placement = NormPlacement::shared;
  read_rotary(in, spec, {.partial = 0.5, .may_be_partial = true});
}

Storage store_phi(const DecoderSpec&) {
  return {.modules = {{"model.norm", "model.final_layernorm"},
                      {"self_attn.o_proj", "self_attn.dense"},
                      {"mlp.up_proj", "mlp.fc1"},
                      {"mlp.down_proj", "mlp.fc2"}}};
}

}  // namespace troupe::engine::models
