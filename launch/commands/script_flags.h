// The flags of MindSpeed's scripts that a command of ours takes beside its options.
#pragma once

#include <CLI/App.hpp>

namespace troupe::launch::commands {

/// Adds the flags of launch/tools/tables/tool_table.h that `command` has no option for, without a
/// line of help: those that change nothing are taken, and those that are refused say why. A flag
/// that acts in another program stays unknown. Call it after all options.
void add_script_flags(CLI::App& command);

}  // namespace troupe::launch::commands
