// Model folders of `troupe info`. Each function adds sections to the report.
#pragma once

#include <string>

#include "engine/base/json.h"
#include "launch/commands/info/report.h"

namespace troupe::launch::commands {

/// A model folder, with values in place of those of config.json (models/overrides.h): architecture,
/// sizes, weights against their index and against config.json, memory, generation_config.json.
void inspect_model(const std::string& folder, const Json& overrides, Report& report);
/// A config.json without its folder: whether this architecture with these settings can be used, its
/// sizes and memory.
void inspect_config(const std::string& path, const Json& overrides, Report& report);

}  // namespace troupe::launch::commands
