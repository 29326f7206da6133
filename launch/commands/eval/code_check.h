// CodeCheck: runs programs with their tests in the sandbox of reward programs.
#pragma once

#include <memory>

#include "actors/roles/rules/rules.h"
#include "launch/evaluation/scores.h"

namespace troupe::launch::commands {

/// Each program runs in a new Python process without network, in an empty folder, for at most
/// `seconds` and 512 MiB. It passes if it ends without an exception. The sandbox is started and
/// tried at the first program. Errc::usage, not_found, unsupported where it cannot be started.
evaluation::CodeCheck sandboxed_code_check(double seconds);

}  // namespace troupe::launch::commands
