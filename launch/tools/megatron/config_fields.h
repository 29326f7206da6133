// Flags that are a number or a word of config.json, and those that replace one.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/models/spec.h"
#include "launch/tools/megatron/flags.h"

namespace troupe::launch::tools::megatron {

/// Compares the flags with the rule `field` with the values of these names in config.json, those of
/// rope_scaling in either layout. Returns a sentence for each contradiction.
std::vector<std::string> differing_fields(const CommandLine& line, const Json& config);

struct Replaced {
  Json overrides = Json::Object{};    ///< of config.json (engine/models/overrides.h)
  std::vector<std::string> notes;     ///< a line for each
  std::vector<std::string> problems;  ///< values that are no positive numbers
};
/// The values of --norm-epsilon and --rotary-base, or where they are left out their defaults in the
/// table, count in place of those of config.json, as in Megatron, which does not read it: the
/// weights keep their shapes. A base has no effect without rotary positions.
Replaced replaced_values(const CommandLine& line, const Json& config,
                         const engine::models::DecoderSpec& spec);

}  // namespace troupe::launch::tools::megatron
