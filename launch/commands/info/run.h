// Runs, checkpoints, adapters and run files of `troupe info`. Each function adds sections to the
// report.
#pragma once

#include <string>

#include "launch/commands/info/report.h"

namespace troupe::launch::commands {

void inspect_adapter(const std::string& folder, Report& report);
/// A run's output directory.
void inspect_run(const std::string& folder, Report& report);
void inspect_checkpoint(const std::string& folder, Report& report);
/// A run file (YAML) with the keys of docs/configuration.md.
void inspect_run_file(const std::string& path, Report& report);

}  // namespace troupe::launch::commands
