// The commands in a script that print a folder: they need no execution.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launch/tools/migration/shell/state.h"

namespace troupe::launch::tools::migration::shell {

/// What `pwd`, `dirname PATH` and `cd PATH && pwd` print; nullopt for another command, and for what
/// is not known. `path` expands the path.
std::optional<std::string> printed_folder(
    std::string_view command, const State& state,
    const std::function<std::optional<std::string>(const std::string&)>& path);

}  // namespace troupe::launch::tools::migration::shell
