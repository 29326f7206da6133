// The files of a folder against a list of SHA-256 sums.
#pragma once

#include <string>

#include "launch/commands/info/report.h"

namespace troupe::launch::commands {

/// Compares the files of `folder` with `list`, in the format of sha256sum. Names every file that
/// differs, is missing, or is not in the list; files and folders whose names begin with a dot and
/// the list itself are left out.
void inspect_checksums(const std::string& folder, const std::string& list, Report& report);

}  // namespace troupe::launch::commands
