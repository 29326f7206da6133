// MiniCPM (Hu et al. 2024, arXiv:2404.06395): a Llama whose embeddings, residuals and logits are
// scaled as maximal update parametrization demands.
#include <cmath>

#include "engine/base/text.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_minicpm(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"scale_emb"});
  for (const char* key : {"sparse_config", "mlp_bias"})
    if (in.find(key) && *in.find(key) != Json(false))
      in.fail(Errc::unsupported, cat("\"", key, "\" is not supported"));
  read_sizes(in, spec, {.tied = true});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.embedding_multiplier = in.positive({"scale_emb"}, 1);
  spec.residual_multiplier =
      in.positive({"scale_depth"}, 1) / std::sqrt(static_cast<double>(spec.layers));
  spec.logit_scale = in.positive({"dim_model_base"}, 1) / static_cast<double>(spec.width);
  read_rotary(in, spec);
}

}  // namespace troupe::engine::models
