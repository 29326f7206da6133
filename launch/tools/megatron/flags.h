// The flags of Megatron core 0.8 (core_r0.8.0, megatron/training/arguments.py) and of MindSpeed-LLM
// as the programs pretrain_gpt and posttrain_gpt take them. The table is text, one row a line:
//
//   # Group
//   NAMES | VALUES | HOW | REMARK
//
// VALUES: how many words follow: 0, 1, 2, 3, + for one or more, * for any number. HOW:
//   import         by the row of that name in launch/tools/migration (what has none there is
//   refused) config FIELD   checked against this field of config.json, or defines it key KEY sets
//   this key program KEY    sets this key together with other flags only A B ...   other values are
//   refused so             what troupe does anyway no             refused, for the reason of the
//   remark
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe::launch::tools::megatron {

enum class FlagClass { acts, already_so, refused };
constexpr std::array<std::string_view, 3> names_of(FlagClass) {
  return {"acts", "already so", "refused"};
}

enum class Rule { import, config, key, program, only, so, no };

struct Flag {
  std::string_view group, name;  ///< without dashes: "num-layers"
  std::string_view count;        ///< 0, 1, 2, 3, + or *
  Rule rule = Rule::no;
  std::string_view argument;  ///< of the rule: a field, a key, or the values
  std::string_view remark;
};

std::span<const Flag> flags();
/// Dashes and underscores are the same, as for argparse's destinations; nullptr: unknown.
const Flag* find_flag(std::string_view name);
FlagClass class_of(const Flag& flag);
/// The key that it sets or is compared with ("train.steps", "config.json num_hidden_layers"), or
/// "".
std::string key_of(const Flag& flag);
/// Why it is refused, or what it does.
std::string remark_of(const Flag& flag);

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
