// Phi-3 (Abdin et al. 2024, arXiv:2404.14219): a Llama with a window, whose files fuse projections;
// longer contexts by LongRoPE.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_phi3(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"sliding_window", "partial_rotary_factor"});
  for (const char* bias : {"attention_bias", "mlp_bias", "lm_head_bias"}) in.reject_flag(bias);
  read_sizes(in, spec, {.default_positions = 4096, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  read_rotary(in, spec, {.may_be_partial = true});
  read_window(in, spec);
}

Storage store_phi3(const DecoderSpec&) {
  return {.fusions = {
              {"self_attn.qkv_proj", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
              {"mlp.gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}}}};
}

}  // namespace troupe::engine::models
