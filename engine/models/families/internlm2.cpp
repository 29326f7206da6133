// InternLM2 (Cai et al. 2024, arXiv:2403.17297): a Llama under other names, with queries, keys and
// values of each key/value head together.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_internlm2(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_sizes(in, spec, {.default_positions = 2048});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("bias", true);
  read_rotary(in, spec);
}

Storage store_internlm2(const DecoderSpec&) {
  return {.modules = {{"model.embed_tokens", "model.tok_embeddings"},
                      {"lm_head", "output"},
                      {"input_layernorm", "attention_norm"},
                      {"post_attention_layernorm", "ffn_norm"},
                      {"self_attn.o_proj", "attention.wo"},
                      {"mlp.gate_proj", "feed_forward.w1"},
                      {"mlp.up_proj", "feed_forward.w3"},
                      {"mlp.down_proj", "feed_forward.w2"}},
          .fusions = {{"attention.wqkv",
                       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                       Fusion::Order::groups}}};
}

}  // namespace troupe::engine::models
