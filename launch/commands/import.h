// import: a run of another tool as a run file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch {

struct ImportOptions {
  std::vector<std::string> words;  ///< a file and "key=value" overrides, or a command line
  std::string tool, algorithm;     ///< empty: from the settings
  std::string output;              ///< empty: stdout
  std::int64_t devices = 0;        ///< 0: as the command line says, or 1
  std::string table;               ///< prints this tool's table instead
};

/// Writes the run file to stdout or `output`, and the report to stderr. Throws Failure.
int import_run(const ImportOptions& options);

}  // namespace troupe::launch
