// The reward of an imported run: the functions of other tools that are rules here.
#pragma once

#include <string_view>

#include "launch/tools/migration/settings.h"

namespace troupe::launch::tools::migration {

/// Converts a value by one of the converters rewards, reward_weights and reward_model. False for
/// another converter.
bool convert_reward(ImportSettings& settings, std::string_view converter,
                    const config::YamlNode& value);
/// Writes the rules; a method that needs a reward and has none gets one, with a note.
void finish_reward(ImportSettings& settings);

}  // namespace troupe::launch::tools::migration
