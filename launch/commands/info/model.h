// Model folders of `troupe info`. Each function adds sections to the report.
#pragma once

#include <string>

#include "launch/commands/info/report.h"

namespace troupe::launch {

/// A model folder: architecture, sizes, weights against their index and against config.json,
/// memory, generation_config.json.
void inspect_model(const std::string& folder, Report& report);

}  // namespace troupe::launch
