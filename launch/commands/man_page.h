// `troupe man [COMMAND]`: manual pages of section 1, written from the option tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/commands/command_table.h"

namespace troupe::launch::commands {

/// The page of `command` as troff with the man macros (man(7)); "" is troupe(1), the page of the
/// program, which lists the commands and the exit codes. Failure(usage) for an unknown command.
std::string man_page(std::string_view command, const std::vector<CommandEntry>& commands,
                     std::string_view version);

}  // namespace troupe::launch::commands
