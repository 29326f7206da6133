// The settings of another tool's run: from a YAML or JSON file, a shell script, or the words of a
// command line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "launch/config/yaml.h"
#include "launch/tools/migration/shell/run.h"
#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::tools::migration {

struct ForeignSetting {
  std::string key;  ///< as written, without leading dashes; nested keys with dots
  config::YamlNode value;
  std::string where;    ///< "run.yaml:3", or the command
  std::string unknown;  ///< why its value could not be evaluated; empty: it is known
};

struct ForeignRun {
  std::optional<tables::Tool> tool;  ///< of the program that a command line starts
  std::string method;                ///< the tool's name of the method: "train_dpo", "reward"
  std::int64_t devices = 0;          ///< of torchrun, deepspeed or accelerate; 0: not said
  std::string launcher;              ///< the words in front of the program
  std::vector<ForeignSetting> settings;
  std::vector<std::string> unread;  ///< words that are neither an option nor a setting
  std::vector<std::string> notes;   ///< of the script, for the report
  std::string folder;               ///< of the file; files that it names may be near it
};

/// What a script is called with.
struct ScriptInput {
  std::vector<std::string> arguments;  ///< $1, $2, ...; none: they are not known
  std::map<std::string, std::string> environment;
};

/// The command of a script that trains. Errors as read_foreign_file().
Result<shell::ScriptCommand> command_of_script(const std::string& path, const ScriptInput& input,
                                               std::vector<std::string>& notes);

/// Errc::usage: no such file, malformed YAML, a script without a known program, and beyond the
/// bounds of an evaluation. Errc::bad_input: no bash script; what it starts could not be evaluated.
/// Errc::unsupported: a program that is none that trains. Errc::not_found: a file that it names.
Result<ForeignRun> read_foreign_file(const std::string& path, const ScriptInput& input = {});
/// Adds the settings of a YAML or JSON file; keys in maps are joined with dots.
Result<> add_yaml(const std::string& path, ForeignRun& run);
/// Errc::usage: no known program among the words.
Result<ForeignRun> read_foreign_words(const std::vector<std::string>& words,
                                      const std::string& where);

/// Replaces ${a.b} by the value of the setting a.b, as OmegaConf does (verl). References to
/// anything else, such as ${oc.env:USER}, stay.
void resolve_references(ForeignRun& run);

/// Adds "key=value" words; other words are kept as unread.
void add_overrides(const std::vector<std::string>& words, ForeignRun& run);

/// The text of a scalar ("true" for Python's True, "null" for None), or a list as "[a, b]".
std::string text_of(const config::YamlNode& node);
/// The items of a list, or the pieces of a text between commas or blanks.
std::vector<std::string> items_of(const config::YamlNode& node);
config::YamlNode scalar_node(std::string_view text);

}  // namespace troupe::launch::tools::migration
