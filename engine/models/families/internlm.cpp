// InternLM (InternLM Team 2023): a Llama with biases in attention. Files of the first releases have
// an object "rotary" instead of the keys of transformers.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

// "rotary": {"base": 10000, "type": "dynamic" or "origin", "scaling_factor": 1}.
Json parameters_of(ConfigReader& in, const Json& rotary) {
  if (!rotary.is_object()) {
    in.fail(Errc::bad_input, "\"rotary\" must be an object with \"type\" and \"base\"");
    return Json::Object{};
  }
  ConfigReader inner = in.inside(rotary);
  Json out(Json::Object{});
  out.set("rope_theta", inner.positive({"base"}, 10000));
  const std::string type = inner.text({"type"}, "dynamic");
  if (type == "dynamic")
    out.set("rope_type", type).set("factor", inner.positive({"scaling_factor"}, 1));
  else if (type != "origin")
    inner.fail(Errc::unsupported, "\"rotary\" has an unknown \"type\" (known: origin, dynamic)");
  in.take(inner);
  return out;
}

}  // namespace

void read_internlm(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_sizes(in, spec);
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("bias", true);
  if (const Json* rotary = in.find("rotary"))
    spec.rotary = {read_rotary_table(in, parameters_of(in, *rotary), spec, {})};
  else
    read_rotary(in, spec);
}

}  // namespace troupe::engine::models
