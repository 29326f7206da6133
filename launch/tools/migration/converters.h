// The conversions that a table names with @, and what follows from several settings together.
#pragma once

#include "launch/tools/migration/settings.h"

namespace troupe::launch::tools::migration {

/// Converts a value by the row's converter, and reports it.
void convert_value(ImportSettings& settings, const tables::ToolKey& row,
                   const config::YamlNode& value);
/// Batch sizes, betas, the tool's preset, and a reward, after all settings.
void finish(ImportSettings& settings);

}  // namespace troupe::launch::tools::migration
