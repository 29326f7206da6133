// Falcon (Almazrouei et al. 2023, arXiv:2311.16867): attention and MLP side by side with one
// LayerNorm or two, or one after the other; rotary positions or ALiBi; one key/value head, groups
// or a pair for each head, in one fused projection.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

NormPlacement placement(ConfigReader& in, bool new_decoder) {
  if (!in.flag("parallel_attn", true) && !new_decoder) return NormPlacement::before;
  const std::int64_t norms = in.size({"num_ln_in_parallel_attn"}, 1, 2, new_decoder ? 2 : 1);
  return norms == 2 ? NormPlacement::parallel : NormPlacement::shared;
}

}  // namespace

void read_falcon(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"parallel_attn", "alibi", "attention_dropout", "hidden_dropout"});
  read_sizes(in, spec,
             {.width = {"hidden_size", "n_embed"},
              .layers = {"num_hidden_layers", "n_layer"},
              .heads = {"num_attention_heads", "n_head"},
              .inner = {"ffn_hidden_size"},
              .eps = {"layer_norm_epsilon"},
              .kv_heads = {"num_kv_heads", "n_head_kv"},
              .head_size = {},
              .inner_of_width = 4,
              .default_eps = 1e-5,
              .tied = true});
  const bool new_decoder = in.flag("new_decoder_architecture", false);
  // num_kv_heads is read in the new architecture only.
  if (!new_decoder) spec.kv_heads = in.flag("multi_query", true) ? 1 : spec.heads;
  spec.activation = read_activation(in, {"activation"}, "gelu");
  spec.attention_bias = spec.output_bias = spec.mlp_bias = in.flag("bias", false);
  spec.layer_norm = spec.norm_bias = true;
  spec.gated = false;
  spec.norm_placement = placement(in, new_decoder);
  spec.alibi = spec.alibi_scaled = in.flag("alibi", false);
  if (!spec.alibi) read_rotary(in, spec);
}

Storage store_falcon(const DecoderSpec& spec) {
  Storage out{.layers = "transformer.h.",
              .modules = {{"model.embed_tokens", "transformer.word_embeddings"},
                          {"model.norm", "transformer.ln_f"},
                          {"self_attn.o_proj", "self_attention.dense"},
                          {"mlp.up_proj", "mlp.dense_h_to_4h"},
                          {"mlp.down_proj", "mlp.dense_4h_to_h"}},
              .fusions = {{"self_attention.query_key_value",
                           {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                           Fusion::Order::groups}}};
  if (spec.norm_placement == NormPlacement::parallel) {
    out.modules.push_back({"input_layernorm", "ln_attn"});
    out.modules.push_back({"post_attention_layernorm", "ln_mlp"});
  }
  return out;
}

}  // namespace troupe::engine::models
