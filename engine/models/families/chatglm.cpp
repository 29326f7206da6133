// ChatGLM2, ChatGLM3 and GLM-4-9B in the form of their own code (ChatGLMModel; Team GLM 2024,
// arXiv:2406.12793): rotary positions on half of a head's channels, in interleaved pairs, and fused
// projections. "rope_ratio" multiplies the rotary base, as in ChatGLM3-6B-32K and GLM-4.
#include "engine/base/text/text.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_chatglm(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  in.reject_flag("interleaved_qkv");
  for (const char* required : {"rmsnorm", "post_layer_norm", "original_rope"})
    if (!in.flag(required, true))
      in.fail(Errc::unsupported, cat("\"", required, "\": false is not supported"));
  if (!in.flag("multi_query_attention", false) || !in.find("multi_query_group_num"))
    in.fail(Errc::unsupported,
            "expected \"multi_query_attention\": true and a \"multi_query_group_num\"");
  for (const char* absent : {"quantization_bit", "pre_seq_len"})
    if (in.number({absent}, 0) != 0)
      in.fail(Errc::unsupported, cat("\"", absent, "\" is not supported"));
  read_sizes(in, spec,
             {.layers = {"num_layers", "num_hidden_layers"},
              .inner = {"ffn_hidden_size", "intermediate_size"},
              .positions = {"seq_length", "max_position_embeddings"},
              .eps = {"layernorm_epsilon"},
              .vocabulary = {"padded_vocab_size", "vocab_size"},
              .kv_heads = {"multi_query_group_num"},
              .head_size = {"kv_channels"},
              .default_eps = 1e-5});
  spec.output_bias = spec.mlp_bias = in.flag("add_bias_linear", false);
  spec.attention_bias = spec.output_bias || in.flag("add_qkv_bias", false);
  read_rotary(in, spec,
              {.theta = 10000 * in.positive({"rope_ratio"}, 1),
               .partial = 0.5,
               .may_be_partial = true,
               .interleaved = true});
}

Storage store_chatglm(const DecoderSpec&) {
  return {.layers = "transformer.encoder.layers.",
          .modules = {{"model.embed_tokens", "transformer.embedding.word_embeddings"},
                      {"model.norm", "transformer.encoder.final_layernorm"},
                      {"lm_head", "transformer.output_layer"},
                      {"self_attn.o_proj", "self_attention.dense"},
                      {"mlp.down_proj", "mlp.dense_4h_to_h"}},
          .fusions = {{"self_attention.query_key_value",
                       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
                      {"mlp.dense_h_to_4h", {"mlp.gate_proj", "mlp.up_proj"}}}};
}

}  // namespace troupe::engine::models
