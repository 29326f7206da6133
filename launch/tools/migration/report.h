// The results of an import: the run file, and the report.
#pragma once

#include <string>

#include "launch/tools/migration/conversion.h"

namespace troupe::launch::tools::migration {

/// The run file: what differs from the defaults, each with the setting that it came from. Values
/// that are the default are reported as such in `converted`.
std::string run_file(Converted& converted, tables::Tool tool, const std::string& source);
/// A line for each setting of the tool by outcome, and the notes.
std::string import_report(const Converted& converted, tables::Tool tool);

}  // namespace troupe::launch::tools::migration
