// Granite 3 (IBM 2024): a Llama with multipliers of embeddings, attention, residuals and logits.
// The dropout of config.json is not applied.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_granite(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"attention_dropout", "attention_multiplier", "embedding_multiplier",
                         "residual_multiplier", "logits_scaling"});
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

}  // namespace troupe::engine::models
