// The specification of a config.json that a test changes.
#pragma once

#include "engine/models/families.h"

namespace troupe::engine::models {

/// read_spec() of the JSON text `base` with the members of the JSON text `changes`.
inline Result<DecoderSpec> read_changed(std::string_view base, std::string_view architecture,
                                        std::string_view changes) {
  Json config = value_or_throw(parse_json(base, "base"));
  config.set("architectures", Json::Array{architecture});
  const Json wanted = value_or_throw(parse_json(changes, "changes"));
  for (const auto& [key, value] : wanted.object()) config.set(key, value);
  return read_spec(config, "config.json");
}

}  // namespace troupe::engine::models
