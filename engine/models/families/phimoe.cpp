// Phi-3.5-MoE (Abdin et al. 2024, arXiv:2404.14219): a Mixtral with LayerNorm, whose router picks
// two experts in turn. The picks are those without noise, in training, too.
#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_phimoe(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"sliding_window", "num_local_experts", "num_experts"});
  read_sizes(in, spec, {.default_positions = 131072, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.layer_norm = spec.norm_bias = true;
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.head_bias = in.flag("lm_head_bias", false);
  read_rotary(in, spec, {.theta = 1e6});
  read_window(in, spec);
  if (in.number({"input_jitter_noise"}, 0) != 0)
    in.fail(Errc::unsupported, "\"input_jitter_noise\" other than 0 is not supported");
  ExpertsSpec& experts = read_experts(in, spec,
                                      {.count = {"num_local_experts", "num_experts"},
                                       .inner = {},
                                       .default_count = 16,
                                       .default_chosen = 2});
  experts.router.score = ops::RouterScore::sparse_mixer;
  experts.router.jitter = in.number({"router_jitter_noise"}, 0.01);
  if (experts.router.chosen != 2 || experts.router.experts < 2)
    in.fail(Errc::unsupported, "\"num_experts_per_tok\" must be 2 of at least two experts");
}

}  // namespace troupe::engine::models
