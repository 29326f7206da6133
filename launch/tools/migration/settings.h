// The settings that an import has made so far, and its report.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/migration/conversion.h"

namespace troupe::launch::tools::migration {

class ImportSettings {
 public:
  ImportSettings(tables::Tool of, const ForeignRun& from);
  void begin(const std::string& algorithm, const std::string& recipe_name);

  const tables::Tool tool;
  const ForeignRun& run;
  std::string recipe;
  Converted converted;
  std::string current;  ///< the setting that is being converted, for the report

  /// True if the run gives this setting of the tool, known or not.
  bool given(std::string_view name) const;
  /// Its text, or `otherwise`; also if it could not be evaluated, which undoes an attempt().
  std::string theirs(std::string_view name, const std::string& otherwise) const;
  /// Its number, or `otherwise` if it is not set. Throws Failure (Errc::usage) for another text.
  double number(std::string_view name, double otherwise) const;

  /// The keys of a row that this run's method reads; of keys for one algorithm only, that one.
  std::vector<std::string> targets(const tables::ToolKey& row) const;
  /// True if our key has a value already.
  bool has(std::string_view key) const;

  /// Sets a key and reports it; a text or a list that the key refuses is reported as without
  /// equivalent. Throws Failure (Errc::usage) for a number that it refuses.
  void set(const std::string& key, const config::YamlNode& value);
  /// Sets a key without a line of its own. Throws Failure (Errc::usage) if it refuses the value.
  void require(const std::string& key, std::string_view value);
  /// Sets a key without a line of its own. Returns "" or why the key refuses the value.
  std::string put(const std::string& key, std::string_view value);
  void line(Outcome outcome, std::string_view text);
  /// A conversion, whose values are not kept if it needs a setting that could not be evaluated.
  void attempt(const std::function<void()>& conversion);
  void note(std::string text);
  /// Throws Failure (Errc::usage): the current setting cannot be our key for this reason.
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

 private:
  std::map<std::string_view, std::vector<const ForeignSetting*>> by_name_;  ///< of the tool's table
  mutable std::string missing_;  ///< the setting that an attempt needs, and why it has no value
};

/// A text, or a list in brackets.
config::YamlNode node_of_value(std::string_view text);
/// A value as YAML: a list in brackets, a text in quotes where it needs them.
std::string yaml_of(const config::YamlNode& value);

}  // namespace troupe::launch::tools::migration
