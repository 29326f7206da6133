// Mixtral (Jiang et al. 2024, arXiv:2401.04088): a Mistral with experts in every layer.
#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_mixtral(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"sliding_window", "num_local_experts", "num_experts"});
  in.reject_flag("attention_bias");
  read_sizes(in, spec, {.default_positions = 131072, .default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  read_rotary(in, spec, {.theta = 1e6});
  read_window(in, spec);
  if (in.number({"router_jitter_noise"}, 0) != 0)
    in.fail(Errc::unsupported, "\"router_jitter_noise\" other than 0 is not supported");
  ExpertsSpec& experts = read_experts(in, spec,
                                      {.count = {"num_local_experts", "num_experts"},
                                       .inner = {},
                                       .default_count = 8,
                                       .default_chosen = 2});
  experts.router.renormalize = ops::Renormalize::sum;
}

}  // namespace troupe::engine::models
