// Data files of `troupe info`. Each function adds sections to the report.
#pragma once

#include <string>
#include <vector>

#include "launch/commands/info/report.h"

namespace troupe::launch::commands {

/// A data file, a folder of data files, or a pattern. `column_names`: for tables without a header.
void inspect_data(const std::string& path, const std::vector<std::string>& column_names,
                  Report& report);

}  // namespace troupe::launch::commands
