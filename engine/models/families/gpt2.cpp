// GPT-2 (Radford et al. 2019): learned positions, LayerNorm, a plain MLP, one fused projection, and
// matrices stored transposed. The dropout of config.json is not applied.
#include "engine/base/text/text.h"
#include "engine/models/families.h"

namespace troupe::engine::models {

void read_gpt2(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"attn_pdrop", "embd_pdrop", "resid_pdrop"});
  if (!in.flag("scale_attn_weights", true))
    in.fail(Errc::unsupported, "\"scale_attn_weights\": false is not supported");
  read_sizes(in, spec,
             {.width = {"n_embd", "hidden_size"},
              .layers = {"n_layer", "num_hidden_layers"},
              .heads = {"n_head", "num_attention_heads"},
              .inner = {"n_inner"},
              .positions = {"n_positions"},
              .eps = {"layer_norm_epsilon"},
              .default_positions = 1024,
              .inner_of_width = 4,
              .default_eps = 1e-5,
              .tied = true});
  spec.kv_heads = spec.heads;  // num_key_value_heads is not read
  spec.activation = read_activation(in, {"activation_function"}, "gelu_new");
  spec.attention_bias = spec.output_bias = spec.mlp_bias = true;
  spec.layer_norm = spec.norm_bias = true;
  spec.gated = false;
  spec.learned_positions = spec.max_positions;
}

Storage store_gpt2(const DecoderSpec&) {
  return {
      .layers = "transformer.h.",
      .modules = {{"model.embed_tokens", "transformer.wte"},
                  {"model.embed_positions", "transformer.wpe"},
                  {"model.norm", "transformer.ln_f"},
                  {"input_layernorm", "ln_1"},
                  {"post_attention_layernorm", "ln_2"},
                  {"self_attn.o_proj", "attn.c_proj"},
                  {"mlp.up_proj", "mlp.c_fc"},
                  {"mlp.down_proj", "mlp.c_proj"}},
      .fusions = {{"attn.c_attn", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}}},
      .transposed = true,
      .token_score = "classifier"};
}

}  // namespace troupe::engine::models
