// Aquila and Aquila2 (BAAI 2023): a Llama under another name, without biases. The files of Aquila
// name the architecture AquilaModel, those of Aquila2 AquilaForCausalLM.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

void read_aquila(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  for (const char* bias : {"attention_bias", "mlp_bias"}) in.reject_flag(bias);
  read_sizes(in, spec);
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  read_rotary(in, spec);
}

}  // namespace troupe::engine::models
