// The command lines of Megatron's programs, by the flags of launch/tools/tables/tool_table.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "launch/tools/tables/flag_classes.h"

namespace troupe::launch::tools::megatron {

using Flag = tables::MegatronFlag;
using FlagClass = tables::FlagClass;
using Rule = tables::FlagRule;
using tables::class_of;
using tables::find_flag;

/// A flag of a command line with its values.
struct Given {
  const Flag* flag = nullptr;
  std::vector<std::string> values;
};
struct CommandLine {
  std::vector<Given> flags;            ///< a later one replaces an earlier one of the same name
  std::vector<std::string> overrides;  ///< key=value words, settings of troupe

  const Given* find(std::string_view name) const;
  /// The first value, or `otherwise` where the flag is not given.
  std::string value(std::string_view name, const std::string& otherwise = "") const;
};

/// Errc::usage with all problems: unknown flags, wrong numbers of values, refused flags and values.
Result<CommandLine> read_command_line(const std::vector<std::string>& words);

/// `troupe flags`: the table, a line or a JSON object for each flag.
int list_flags(bool as_json);

}  // namespace troupe::launch::tools::megatron
