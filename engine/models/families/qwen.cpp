// Qwen2 (Yang et al. 2024, arXiv:2407.10671): a Llama whose queries, keys and values have biases.
// Qwen3 (2025, arXiv:2505.09388): none, and an RMSNorm over each head of queries and keys. In both,
// the later layers may have a sliding window.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

void read_qwen(ConfigReader& in, DecoderSpec& spec, const SizeNames& names) {
  in.reject_unsupported({"sliding_window", "use_sliding_window", "layer_types"});
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

}  // namespace

void read_qwen2(ConfigReader& in, DecoderSpec& spec) {
  read_qwen(in, spec, {.default_positions = 32768});
  spec.attention_bias = true;
}

void read_qwen3(ConfigReader& in, DecoderSpec& spec) {
  read_qwen(in, spec, {.default_positions = 32768, .default_head_size = 128});
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.head_norms = true;
}

}  // namespace troupe::engine::models
