// Flags that are a number or a word of config.json, and what a flag that is left out means.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "launch/tools/megatron/flags.h"

namespace troupe::launch::tools::megatron {

/// Compares the flags with the rule `field` with the values of these names in config.json, those of
/// rope_scaling in either layout. Returns a sentence for each contradiction.
std::vector<std::string> differing_fields(const CommandLine& line, const Json& config);

struct LeftOut {
  Json overrides = Json::Object{};  ///< of config.json (engine/models/overrides.h)
  std::vector<std::string> notes;   ///< a line for each
};
/// --norm-epsilon and --rotary-base have the defaults of their table rows where they are left out
/// and config.json has another value: the weights keep their shapes, so the default counts, as in
/// Megatron.
LeftOut left_out(const CommandLine& line, const Json& config);

}  // namespace troupe::launch::tools::megatron
