// Qwen, first generation (Bai et al. 2023, arXiv:2309.16609): a Llama under the names of GPT-2,
// with one fused projection that has biases. "intermediate_size" counts both inner projections.
//
// Beyond "seq_length" positions, "use_dynamic_ntk" changes the rotary base and "use_logn_attn"
// scales the queries, in generation only. Both leave shorter sequences as they are, so the model
// has "seq_length" positions where one of them is on.
#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_qwen1(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  in.reject_flag("use_cache_quantization");
  for (const char* dropout : {"attn_dropout_prob", "emb_dropout_prob"})
    if (in.number({dropout}, 0) != 0)
      in.fail(Errc::unsupported, cat("\"", dropout, "\": dropout is not supported"));
  if (!in.flag("scale_attn_weights", true))
    in.fail(Errc::unsupported, "\"scale_attn_weights\": false is not supported");
  const bool adapts = in.flag("use_dynamic_ntk", true) || in.flag("use_logn_attn", true);
  SizeNames names{.eps = {"layer_norm_epsilon"}, .head_size = {"kv_channels"}};
  if (adapts) names.positions = {"seq_length", "max_position_embeddings"};
  read_sizes(in, spec, names);
  if (spec.inner % 2)
    in.fail(Errc::bad_input, cat("\"intermediate_size\" must be even, found ", spec.inner));
  spec.inner = std::max<std::int64_t>(spec.inner / 2, 1);
  spec.attention_bias = true;
  spec.output_bias = spec.mlp_bias = !in.flag("no_bias", true);
  read_rotary(in, spec, {.theta = in.positive({"rotary_emb_base"}, 10000)});
}

Storage store_qwen1(const DecoderSpec&) {
  return {
      .layers = "transformer.h.",
      .modules = {{"model.embed_tokens", "transformer.wte"},
                  {"model.norm", "transformer.ln_f"},
                  {"input_layernorm", "ln_1"},
                  {"post_attention_layernorm", "ln_2"},
                  {"self_attn.o_proj", "attn.c_proj"},
                  {"mlp.gate_proj", "mlp.w2"},
                  {"mlp.up_proj", "mlp.w1"},
                  {"mlp.down_proj", "mlp.c_proj"}},
      .fusions = {{"attn.c_attn", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}}}};
}

}  // namespace troupe::engine::models
