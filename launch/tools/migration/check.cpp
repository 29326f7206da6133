#include "launch/tools/migration/check.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/presets.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/resolve.h"
#include "launch/tools/migration/report.h"

namespace troupe::launch::tools::migration {
namespace {

bool in_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// True if `line` begins with the key, after the place that the reader names.
bool is_about(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == line.npos) return false;
  const bool ends = at + key.size() == line.size() || !in_key(line[at + key.size()]);
  return ends && (at == 0 || !in_key(line[at - 1]));
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// Changes one value that the reader's answer is about. False if there is none to change.
bool clear_value(Converted& converted, tables::Tool tool, const std::string& problem) {
  const recipes::Recipe* recipe = recipes::find_recipe(converted.algorithm);
  const recipes::Preset* defaults =
      recipe ? recipes::find_compat(name_of(tool), recipe->name) : nullptr;
  const std::string reason = one_line(problem);
  if (defaults && converted.values.contains("compat"))
    for (const auto& each : defaults->values) {
      const std::string key(each.first);
      if (converted.values.contains(key) || !is_about(problem, key)) continue;
      const config::Field* field = config::find_field(key);
      if (!field) continue;
      const std::string from = cat(tables::title_of(tool), "'s default ", each.second);
      converted.values[key] = {config::value_text(*field, config::RunConfig()),
                               from + ", which the method excludes"};
      converted.lines.push_back({Outcome::not_needed, from, cat(key, " is off: ", reason)});
      return true;
    }
  for (const auto& [key, value] : converted.values) {
    if (!key.starts_with("parallel.") || !is_about(problem, key)) continue;
    converted.lines.push_back(
        {Outcome::no_equivalent, value.from,
         cat(key, ": ", value.yaml, " is left out; it does not change results: ", reason)});
    converted.values.erase(key);
    return true;
  }
  return false;
}

}  // namespace

CheckedFile checked_run_file(Converted& converted, tables::Tool tool, const std::string& source) {
  constexpr int rounds = 32;  // one value each
  CheckedFile out;
  for (int round = 0; round < rounds; ++round) {
    out.text = run_file(converted, tool, source);
    const auto config = recipes::config_of(out.text, "the run file");
    out.problem = config ? "" : config.error().what;
    if (config || !clear_value(converted, tool, out.problem)) break;
  }
  out.problem = one_line(std::move(out.problem));
  return out;
}

}  // namespace troupe::launch::tools::migration
