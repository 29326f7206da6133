// Whether a run can start from an imported run file.
#pragma once

#include <string>

#include "launch/tools/migration/conversion.h"

namespace troupe::launch::tools::migration {

struct CheckedFile {
  std::string text;     ///< the run file
  std::string problem;  ///< why `troupe train` refuses it, in one line; empty: it does not
};

/// The run file of `converted`, as run_file() writes it, read by the reader of `troupe train`
/// without looking for its model and data. A default of the tool (compat) that the method excludes
/// is set to ours, and a layout that the run excludes is left out; the report has a line for each.
CheckedFile checked_run_file(Converted& converted, tables::Tool tool, const std::string& source);

}  // namespace troupe::launch::tools::migration
