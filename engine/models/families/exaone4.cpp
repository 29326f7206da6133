// EXAONE 4 (LG AI Research 2025, arXiv:2507.11407): norms after attention and MLP and over heads;
// with windows, the layers that attend to all keys have no positions.
#include "engine/base/text/text.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

// Whether a layer has a window, where "layer_types" does not say it: every `pattern`-th has none,
// or "LLLG" names the types of layers in turn, L with a window.
bool has_window(const std::string& letters, std::int64_t every, std::int64_t layer) {
  if (letters.empty()) return every > 0 && (layer + 1) % every != 0;
  return letters[static_cast<std::size_t>(layer) % letters.size()] == 'L';
}

void read_layers(ConfigReader& in, DecoderSpec& spec) {
  if (!in.find("sliding_window")) return;
  const auto window = static_cast<int>(in.size({"sliding_window"}, 1, 1 << 28));
  const Json* pattern = in.find("sliding_window_pattern");
  const std::string letters =
      pattern && pattern->is_string() ? in.text({"sliding_window_pattern"}, "") : "";
  const std::int64_t every = letters.empty() ? in.size({"sliding_window_pattern"}, 0, 4096, 4) : 0;
  if (letters.find_first_not_of("LG") != std::string::npos)
    in.fail(Errc::bad_input,
            cat("\"sliding_window_pattern\" must be a number or letters L and G, found ",
                quote(letters, 40)));
  const auto types = in.layer_types(spec.layers);
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    const bool local = types.empty() ? has_window(letters, every, i)
                                     : types[static_cast<std::size_t>(i)] == "sliding_attention";
    spec.layer.push_back(local ? LayerSpec{.window = window} : LayerSpec{.rotary = -1});
  }
}

}  // namespace

void read_exaone4(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"sliding_window", "layer_types"});
  read_sizes(in, spec, {.default_eps = 1e-5});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.norm_placement = NormPlacement::after;
  spec.head_norms = true;
  read_rotary(in, spec);
  read_layers(in, spec);
}

}  // namespace troupe::engine::models
