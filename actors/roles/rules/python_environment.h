// The environment of a Python interpreter: what a sandbox must show for its modules to be found.
#pragma once

#include <string>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::actors::rules {

struct PythonEnvironment {
  std::string program;               ///< absolute path
  std::vector<std::string> folders;  ///< prefixes and links that lead to the program
  std::vector<std::string> search;   ///< sys.path: folders and archives of modules that exist
};

/// Asks the interpreter `name`, a path or a name in PATH, by running it outside of a sandbox for at
/// most 30 s. Errc::not_found: no such program. Errc::usage: it is no Python 3.8 or newer.
Result<PythonEnvironment> python_environment(const std::string& name, const std::string& where);

}  // namespace troupe::actors::rules
