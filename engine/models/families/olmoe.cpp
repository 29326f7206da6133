// OLMoE (Muennighoff et al. 2024, arXiv:2409.02060): norms over all of a row's queries and keys,
// and experts in every layer.
#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_olmoe(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"num_experts"});
  read_sizes(in, spec, {.default_positions = 4096, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.width_norms = true;
  read_rotary(in, spec);
  ExpertsSpec& experts =
      read_experts(in, spec, {.inner = {}, .default_count = 64, .default_chosen = 8});
  read_norm_topk(in, experts, false);
}

}  // namespace troupe::engine::models
