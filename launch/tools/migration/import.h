// import: a run of another tool as a run file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch::tools::migration {

struct ImportOptions {
  /// A file and "key=value" overrides, a script and its arguments, or a command line.
  std::vector<std::string> words;
  std::vector<std::string> environment;  ///< "NAME=VALUE": variables of a script
  std::string tool, algorithm;           ///< empty: from the settings
  std::string output;                    ///< empty: stdout
  bool only_command = false;             ///< prints the command that the script starts instead
  std::int64_t devices = 0;              ///< 0: as the command line says, or 1
  std::string table;                     ///< prints this tool's table instead
};

/// Writes the run file to stdout or `output`, and the report to stderr, whose last line is the
/// reason if the result is not 0: 2, the run file is not complete; 3, a setting could not be
/// evaluated. Throws Failure.
int import_run(const ImportOptions& options);

}  // namespace troupe::launch::tools::migration
