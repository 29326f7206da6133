// The programs and configurations of training tools: those that import reads, and those that it
// refuses by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/tools/migration/input.h"

namespace troupe::launch::tools::migration {

/// The tool whose program a word of a command line names.
std::optional<tables::Tool> tool_of(const std::string& word);

/// Why a command with this word is not a training run of a tool that import reads: "this is
/// axolotl, ...", "... troupe convert does this"; empty if nothing is known about it.
std::string other_program(const std::string& word);

/// The tool whose configuration has these settings, if it is one that is not supported: "axolotl".
std::string_view unsupported_tool(const ForeignRun& run);

/// Throws Failure (Errc::unsupported) that names a tool.
[[noreturn]] void refuse_tool(std::string_view where, std::string_view name);

}  // namespace troupe::launch::tools::migration
