// The conversion of another tool's run into a run file: each setting by the rules of the tool's
// table (launch/tools/tables/tool_table.h), and then those that follow from several settings.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/migration/input.h"
#include "launch/tools/migration/numbers.h"
#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::tools::migration {

enum class Outcome {
  became,
  already_default,
  not_needed,
  no_equivalent,
  unknown,
  not_evaluated,  ///< its value depends on something outside of the file
  unusable        ///< numbers in a notation, or in a number, that the key does not have
};

struct ReportLine {
  Outcome outcome;
  std::string setting;  ///< "save_steps 500 (run.yaml:3)"
  std::string text;     ///< "train.save_every: 500", or the reason
};

struct Converted {
  /// Key and value as YAML, with the settings that it came from.
  struct Value {
    std::string yaml, from;
  };
  std::string algorithm;
  std::map<std::string, Value> values;  ///< by our key
  std::vector<ReportLine> lines;        ///< one for each setting of the tool
  std::vector<std::string> notes;       ///< what the user has to do, and the tool's own defaults
  /// Files that the run file names, to be written beside it: a name and the content.
  std::map<std::string, std::string> files;
};

/// `algorithm`: ours, or "" to find it in the settings. Errc::usage if they do not say it,
/// Errc::bad_input if the setting that says it could not be evaluated.
Result<Converted> convert(const ForeignRun& run, tables::Tool tool, const std::string& algorithm);

/// The rows for a setting, which may be in sections of the tool ("actor_config.lr").
std::vector<const tables::ToolKey*> rows_of(tables::Tool tool, const std::string& key);

}  // namespace troupe::launch::tools::migration
