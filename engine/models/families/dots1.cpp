// dots.llm1 (rednote-hilab 2025, arXiv:2506.05767): the layers of Qwen3 with the experts of
// DeepSeek-V3.
#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_dots1(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"n_routed_experts", "sliding_window", "layer_types"});
  read_sizes(in, spec, {});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.head_norms = true;
  read_rotary(in, spec);
  const std::int64_t first = in.size({"max_window_layers"}, 0, 1 << 28, 62);
  const auto late = [](std::int64_t layer, std::int64_t from) { return layer >= from; };
  const bool windows = in.find("sliding_window") != nullptr;
  read_windows(in, spec, windows ? in.size({"sliding_window"}, 1, 1 << 28) : 0, late,
               windows ? first : spec.layers);
  ExpertsSpec& experts = read_experts(in, spec, {.count = {"n_routed_experts"}});
  read_deepseek_experts(in, spec, experts);
  read_norm_topk(in, experts, false, 1e-20);
}

}  // namespace troupe::engine::models
