// The settings of another tool's run: from a YAML or JSON file, a shell script, or the words of a
// command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "launch/config/yaml.h"
#include "launch/migration/tool_table.h"

namespace troupe::launch {

struct ForeignSetting {
  std::string key;  ///< as written, without leading dashes; nested keys with dots
  YamlNode value;
  std::string where;  ///< "run.yaml:3", or the command
};

struct ForeignRun {
  std::optional<Tool> tool;  ///< of the program that a command line starts
  std::string method;        ///< the tool's name of the method: "train_dpo", "reward"
  std::int64_t devices = 0;  ///< of torchrun, deepspeed or accelerate; 0: not said
  std::string launcher;      ///< the words in front of the program
  std::vector<ForeignSetting> settings;
  std::vector<std::string> unread;  ///< words that are neither an option nor a setting
};

/// Errc::usage: no such file, malformed YAML, a script without a known program.
Result<ForeignRun> read_foreign_file(const std::string& path);
/// Errc::usage: no known program among the words.
Result<ForeignRun> read_foreign_words(const std::vector<std::string>& words,
                                      const std::string& where);

/// Replaces ${a.b} by the value of the setting a.b, as OmegaConf does (verl). References to
/// anything else, such as ${oc.env:USER}, stay.
void resolve_references(ForeignRun& run);

/// Adds "key=value" words; other words are kept as unread.
void add_overrides(const std::vector<std::string>& words, ForeignRun& run);

/// The text of a scalar ("true" for Python's True, "null" for None), or a list as "[a, b]".
std::string text_of(const YamlNode& node);
/// The items of a list, or the pieces of a text between commas or blanks.
std::vector<std::string> items_of(const YamlNode& node);
YamlNode scalar_node(std::string_view text);

}  // namespace troupe::launch
