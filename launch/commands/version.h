// `troupe --version`.
#pragma once

#include <string>

namespace troupe::launch::commands {

/// "troupe 0.1.0".
std::string version_line();

/// "troupe 0.1.0 (commit 1879417bc1)", then a line each for the instruction set that is used, the
/// "troupe 0.1.0 (commit 0123456789)"
std::string build_text();
/// MPI that the build was made with, and Arrow, as far as their modules are installed.
std::string version_text();

}  // namespace troupe::launch::commands
