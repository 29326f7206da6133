// GLM (GLM-4-9B as transformers has it) and GLM-4 (0414): rotary positions on half of a head's
// channels, in interleaved pairs; GLM-4 also has norms after attention and MLP. Team GLM 2024,
// arXiv:2406.12793. GLM-4.5 (2025, arXiv:2508.06471): experts as in DeepSeek-V3.
#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_glm(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"partial_rotary_factor"});
  read_sizes(in, spec,
             {.default_positions = 131072, .default_head_size = 128, .default_eps = 1.5625e-7});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = in.flag("attention_bias", true);
  read_rotary(in, spec, {.partial = 0.5, .may_be_partial = true, .interleaved = true});
}

void read_glm4(ConfigReader& in, DecoderSpec& spec) {
  read_glm(in, spec);
  spec.norm_placement = NormPlacement::both;
}

void read_glm4_moe(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"partial_rotary_factor", "use_qk_norm", "n_routed_experts"});
  read_sizes(in, spec, {.default_positions = 131072, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = in.flag("attention_bias", false);
  spec.head_norms = in.flag("use_qk_norm", false);
  read_rotary(in, spec, {.partial = 0.5, .may_be_partial = true});
  ExpertsSpec& experts = read_experts(in, spec,
                                      {.count = {"n_routed_experts"},
                                       .default_count = 128,
                                       .default_chosen = 8,
                                       .default_inner = 1408});
  read_deepseek_experts(in, spec, experts);
  read_norm_topk(in, experts, true, 1e-20);
}

Storage store_glm(const DecoderSpec&) {
  return {.fusions = {{"mlp.gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}}}};
}

}  // namespace troupe::engine::models
