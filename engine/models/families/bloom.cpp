// BLOOM (Scao et al. 2022, arXiv:2211.05100): ALiBi instead of positions, LayerNorm also on the
// embeddings, a plain MLP, one fused projection grouped by head.
#include "engine/models/families.h"

namespace troupe::engine::models {

void read_bloom(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"alibi"});
  // Old files have seq_length, which ALiBi does not need: longer sequences work too.
  read_sizes(in, spec,
             {.width = {"hidden_size", "n_embed"},
              .layers = {"n_layer", "num_hidden_layers"},
              .heads = {"n_head", "num_attention_heads"},
              .inner = {"n_inner"},
              .positions = {"seq_length"},
              .eps = {"layer_norm_epsilon"},
              .inner_of_width = 4,
              .default_eps = 1e-5,
              .tied = true});
  spec.kv_heads = spec.heads;  // num_key_value_heads is not read
  spec.activation = ops::Activation::gelu_tanh;
  spec.attention_bias = spec.output_bias = spec.mlp_bias = true;
  spec.layer_norm = spec.norm_bias = spec.embedding_norm = spec.alibi = true;
  spec.gated = false;
}

Storage store_bloom(const DecoderSpec&) {
  return {.layers = "transformer.h.",
          .modules = {{"model.embed_tokens", "transformer.word_embeddings"},
                      {"model.embed_norm", "transformer.word_embeddings_layernorm"},
                      {"model.norm", "transformer.ln_f"},
                      {"self_attn.o_proj", "self_attention.dense"},
                      {"mlp.up_proj", "mlp.dense_h_to_4h"},
                      {"mlp.down_proj", "mlp.dense_4h_to_h"}},
          .fusions = {{"self_attention.query_key_value",
                       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                       Fusion::Order::groups}},
          .token_score = "classifier"};
}

}  // namespace troupe::engine::models
