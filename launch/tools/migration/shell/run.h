// Evaluation of a bash script: its assignments, conditions, loops and functions with known values.
// No command is executed; the programs that the script would start are listed with their words. A
// value that depends on what a command prints, on a file, on an argument that was not given or on
// anything else outside of the script is unknown, and so is what is assigned under a condition that
// is unknown.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/migration/shell/fields.h"

namespace troupe::launch::tools::migration::shell {

struct ScriptCall {
  std::string path;                    ///< $0
  std::vector<std::string> arguments;  ///< $1, $2, ...; none: they are not known
  std::map<std::string, std::string> environment;
  std::string directory;  ///< in which the script is started
};

struct ScriptCommand {
  std::vector<Field> words;
  std::size_t line = 0;
  std::string uncertain;  ///< why it is not known whether the command is started; empty: it is
};

/// Throws Failure: bad_input for text that is no bash script, usage beyond a bound (limits.h).
std::vector<ScriptCommand> commands_of_script(std::string_view text, const ScriptCall& call);

}  // namespace troupe::launch::tools::migration::shell
