// SmolLM3 (Hugging Face 2025): a Llama whose every fourth layer has no positions, and may have a
// window instead.
#include "engine/base/text/text.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

// Whether each layer has rotary positions.
std::vector<bool> rotary_layers(ConfigReader& in, const DecoderSpec& spec) {
  const std::int64_t every = in.size({"no_rope_layer_interval"}, 1, 4096, 4);
  std::vector<bool> rotates;
  for (std::int64_t i = 0; i < spec.layers; ++i) rotates.push_back((i + 1) % every != 0);
  const Json* list = in.find("no_rope_layers");
  if (!list) return rotates;
  if (!list->is_array() || list->array().size() != rotates.size()) {
    in.fail(Errc::bad_input, cat("\"no_rope_layers\" must be a list of num_hidden_layers ",
                                 spec.layers, " numbers, 0 or 1, found ", quote(list->dump(), 40)));
    return rotates;
  }
  for (std::size_t i = 0; i < rotates.size(); ++i)
    rotates[i] = list->array()[i] != Json(0) && list->array()[i] != Json(false);
  return rotates;
}

}  // namespace

void read_smollm3(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"sliding_window", "use_sliding_window", "layer_types", "no_rope_layers"});
  read_sizes(in, spec, {.default_positions = 32768, .tied = true});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.mlp_bias = in.flag("mlp_bias", false);
  read_rotary(in, spec, {.theta = 2000000});
  const std::int64_t window =
      in.flag("use_sliding_window", false) ? in.size({"sliding_window"}, 1, 1 << 28, 0) : 0;
  const auto rotates = rotary_layers(in, spec);
  const auto types = in.layer_types(spec.layers);
  spec.layer.resize(rotates.size());
  for (std::size_t i = 0; i < rotates.size(); ++i) {
    if (!rotates[i]) spec.layer[i].rotary = -1;
    if (types.empty() ? !rotates[i] : types[i] == "sliding_attention")
      spec.layer[i].window = static_cast<int>(window);
  }
}

}  // namespace troupe::engine::models
