// `troupe completion SHELL`: a script that completes commands, options and their values.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "launch/commands/command_table.h"

namespace troupe::launch::commands {

enum class Shell { bash, zsh, fish };
constexpr std::array<std::string_view, 3> names_of(Shell) {
  return {"bash", "zsh", "fish"};
}

/// The script for `shell`. bash: sourced, or installed in bash-completion/completions; zsh: a
/// function for a folder of fpath; fish: installed in vendor_completions.d.
std::string completion_script(Shell shell, const std::vector<CommandEntry>& commands);

}  // namespace troupe::launch::commands
