// Qwen2 (Yang et al. 2024, arXiv:2407.10671): a Llama whose queries, keys and values have biases.
// Qwen3 (2025, arXiv:2505.09388): none, and an RMSNorm over each head of queries and keys. In both,
// the later layers may have a sliding window. Their mixtures have experts in all layers, every n-th
// one, or all but some; that of Qwen2 has a shared expert with a gate.
#include <algorithm>

#include "engine/models/experts_config.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

void read_qwen(ConfigReader& in, DecoderSpec& spec, const SizeNames& names) {
  in.reject_unsupported(
      {"sliding_window", "use_sliding_window", "layer_types", "num_experts", "num_local_experts"});
  in.reject_flag("mlp_bias");
  read_sizes(in, spec, names);
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  read_rotary(in, spec);
  const bool slides = in.flag("use_sliding_window", false);
  const std::int64_t first = in.size({"max_window_layers"}, 0, 1 << 28, 28);
  const auto late = [](std::int64_t layer, std::int64_t from) { return layer >= from; };
  read_windows(in, spec, slides ? in.size({"sliding_window"}, 1, 1 << 28, 4096) : 0, late,
               slides ? first : spec.layers);
}

// The layers that have experts.
void read_sparse_layers(ConfigReader& in, const DecoderSpec& spec, ExpertsSpec& experts) {
  const std::int64_t step = in.size({"decoder_sparse_step"}, 1, 4096, 1);
  const auto dense = in.layer_numbers("mlp_only_layers", spec.layers);
  for (std::int64_t layer = 0; layer < spec.layers; ++layer)
    experts.sparse.push_back((layer + 1) % step == 0 &&
                             std::ranges::find(dense, layer) == dense.end());
}

}  // namespace

void read_qwen2(ConfigReader& in, DecoderSpec& spec) {
  read_qwen(in, spec, {.default_positions = 32768});
  spec.attention_bias = true;
}

void read_qwen2_moe(ConfigReader& in, DecoderSpec& spec) {
  read_qwen(in, spec, {.default_positions = 32768});
  spec.attention_bias = in.flag("qkv_bias", true);
  ExpertsSpec& experts =
      read_experts(in, spec, {.default_count = 60, .default_chosen = 4, .default_inner = 1408});
  read_norm_topk(in, experts, false);
  experts.shared_inner =
      in.size({"shared_expert_intermediate_size"}, 1, std::int64_t{1} << 20, 5632);
  experts.shared_gate = true;
  read_sparse_layers(in, spec, experts);
}

Storage store_qwen2_moe(const DecoderSpec&) {
  return {.modules = {{"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj"},
                      {"mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj"},
                      {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj"}}};
}

void read_qwen3_moe(ConfigReader& in, DecoderSpec& spec) {
  read_qwen(in, spec, {.default_positions = 32768});
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.head_norms = true;
  ExpertsSpec& experts = read_experts(in, spec,
                                      {.count = {"num_experts", "num_local_experts"},
                                       .default_count = 128,
                                       .default_chosen = 8,
                                       .default_inner = 768});
  read_norm_topk(in, experts, false);
  read_sparse_layers(in, spec, experts);
}

void read_qwen3(ConfigReader& in, DecoderSpec& spec) {
  read_qwen(in, spec, {.default_positions = 32768, .default_head_size = 128});
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.head_norms = true;
}

}  // namespace troupe::engine::models
