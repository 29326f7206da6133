// Mistral (Jiang et al. 2023, arXiv:2310.06825): a Llama with sliding-window attention.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_mistral(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"sliding_window"});
  in.reject_flag("attention_bias");
  read_sizes(in, spec, {.default_positions = 131072});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  read_rotary(in, spec);
  read_window(in, spec, 4096);
}

}  // namespace troupe::engine::models
