// Ernie 4.5 (Baidu 2025): a Llama with interleaved rotary pairs. Its mixture has experts in a range
// of layers, chosen by softmax scores and a bias.
#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

namespace {

void read_layers(ConfigReader& in, DecoderSpec& spec, std::int64_t head_size) {
  in.reject_unsupported({"num_experts"});
  read_sizes(in, spec,
             {.default_positions = 131072,
              .default_head_size = head_size,
              .default_eps = 1e-5,
              .tied = true});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = spec.mlp_bias = in.flag("use_bias", false);
  read_rotary(in, spec, {.theta = 500000, .interleaved = true});
}

}  // namespace

void read_ernie(ConfigReader& in, DecoderSpec& spec) {
  read_layers(in, spec, 128);
}

void read_ernie_moe(ConfigReader& in, DecoderSpec& spec) {
  read_layers(in, spec, 0);
  ExpertsSpec& experts = read_experts(in, spec,
                                      {.count = {"moe_num_experts", "num_experts"},
                                       .chosen = {"moe_k", "num_experts_per_tok"},
                                       .default_count = 64,
                                       .default_chosen = 6,
                                       .default_inner = 1536});
  experts.router.renormalize = ops::Renormalize::bounded_sum;
  experts.router.epsilon = in.positive({"moe_norm_min"}, 1e-12);
  experts.choice_bias = true;
  experts.shared_inner = in.size({"moe_num_shared_experts"}, 0, 1024, 2) * experts.inner;
  const std::int64_t step = in.size({"moe_layer_interval"}, 1, 4096, 1),
                     first = in.size({"moe_layer_start_index"}, 0, 4096, 1),
                     end = in.size({"moe_layer_end_index"}, -1, 4096, -1),
                     last = end < 0 ? spec.layers - 1 : end;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer)
    experts.sparse.push_back((layer + 1) % step == 0 && first <= layer && layer <= last);
}

Storage store_ernie_moe(const DecoderSpec&) {
  return {
      .modules = {{"mlp.gate.e_score_correction_bias", "mlp.moe_statics.e_score_correction_bias"}},
      .stacked_bias = 1};
}

}  // namespace troupe::engine::models
