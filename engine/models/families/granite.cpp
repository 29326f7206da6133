// Granite 3 (IBM 2024): a Llama with multipliers of embeddings, attention, residuals and logits.
// The dropout of config.json is not applied. Its mixture has experts in every layer, whose files
// stack their matrices.
#include "engine/base/text/text.h"
#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_granite(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"attention_dropout", "attention_multiplier", "embedding_multiplier",
                         "residual_multiplier", "logits_scaling", "num_local_experts"});
  read_sizes(in, spec);
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.mlp_bias = in.flag("mlp_bias", false);
  spec.attention_scale = in.positive({"attention_multiplier"}, 1);
  spec.embedding_multiplier = in.positive({"embedding_multiplier"}, 1);
  spec.residual_multiplier = in.positive({"residual_multiplier"}, 1);
  spec.logit_scale = 1 / in.positive({"logits_scaling"}, 1);
  read_rotary(in, spec);
}

void read_granite_moe(ConfigReader& in, DecoderSpec& spec) {
  read_granite(in, spec);
  ExpertsSpec& experts = read_experts(
      in, spec,
      {.count = {"num_local_experts"}, .inner = {}, .default_count = 8, .default_chosen = 2});
  experts.router.chooses_logits = true;
  experts.router.renormalize = ops::Renormalize::sum;
}

Storage store_granite_moe(const DecoderSpec& spec) {
  const std::int64_t count = spec.experts->router.experts;
  Fusion input{.module = "block_sparse_moe.input_linear", .parts = {}, .stacked = count},
      output{.module = "block_sparse_moe.output_linear", .parts = {}, .stacked = count};
  for (std::int64_t e = 0; e < count; ++e) {
    const std::string expert = cat("mlp.experts.", e, ".");
    input.parts.push_back(expert + "gate_proj");
    input.parts.push_back(expert + "up_proj");
    output.parts.push_back(expert + "down_proj");
  }
  return {.modules = {{"mlp.gate", "block_sparse_moe.router.layer"}},
          .fusions = {std::move(input), std::move(output)}};
}

}  // namespace troupe::engine::models
