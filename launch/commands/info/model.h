// Model folders of `troupe info`. Each function adds sections to the report.
#pragma once

#include <string>

#include "launch/commands/info/report.h"

namespace troupe::launch {

/// A model folder: architecture, sizes, weights against their index and against config.json,
/// memory, generation_config.json.
void inspect_model(const std::string& folder, Report& report);
/// A config.json without its folder: whether this architecture with these settings can be used, its
/// sizes and memory.
void inspect_config(const std::string& path, Report& report);

}  // namespace troupe::launch
