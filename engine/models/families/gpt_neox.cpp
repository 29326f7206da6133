// GPT-NeoX and Pythia (Black et al. 2022, arXiv:2204.06745): attention and MLP side by side with a
// LayerNorm each, rotary positions on a part of a head's channels, a projection fused by head.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_gpt_neox(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"use_parallel_residual", "rotary_pct", "partial_rotary_factor",
                         "attention_dropout", "hidden_dropout"});
  read_sizes(in, spec,
             {.eps = {"layer_norm_eps"}, .kv_heads = {}, .head_size = {}, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "gelu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", true);
  spec.mlp_bias = spec.layer_norm = spec.norm_bias = true;
  spec.gated = false;
  spec.norm_placement =
      in.flag("use_parallel_residual", true) ? NormPlacement::parallel : NormPlacement::before;
  read_rotary(in, spec,
              {.partial = 0.25,
               .may_be_partial = true,
               .theta_name = "rotary_emb_base",
               .partial_name = "rotary_pct"});
}

Storage store_gpt_neox(const DecoderSpec&) {
  return {.layers = "gpt_neox.layers.",
          .modules = {{"model.embed_tokens", "gpt_neox.embed_in"},
                      {"model.norm", "gpt_neox.final_layer_norm"},
                      {"lm_head", "embed_out"},
                      {"self_attn.o_proj", "attention.dense"},
                      {"mlp.up_proj", "mlp.dense_h_to_4h"},
                      {"mlp.down_proj", "mlp.dense_4h_to_h"}},
          .fusions = {{"attention.query_key_value",
                       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                       Fusion::Order::groups}}};
}

}  // namespace troupe::engine::models
