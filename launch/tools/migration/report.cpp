#include "launch/tools/migration/report.h"

#include <algorithm>
#include <array>

#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::tools::migration {
namespace {

constexpr std::array<std::string_view, 6> always{"compat",    "model",  "output",
                                                 "data.path", "reward", "algorithm"};

bool is_always(const std::string& key) {
  return std::ranges::find(always, key) != always.end();
}

/// What resolve() makes of some of the values, without files; `values` are keys and YAML.
Result<recipes::Resolved> resolved(const Converted& converted, bool all) {
  recipes::Sources sources{.algorithm = converted.algorithm,
                           .file = "",
                           .sets = {"model=M", "output=O", "data.path=D"},
                           .check_files = false,
                           .options = {}};
  for (const auto& [key, value] : converted.values)
    if (all || is_always(key) || key == "lora.rank" || key == "lora.adapter")
      sources.sets.push_back(cat(key, '=', value.yaml));
  return recipes::resolve(sources);
}

/// Removes the values that are the defaults of this run.
void drop_defaults(Converted& converted) {
  const auto base = resolved(converted, false), whole = resolved(converted, true);
  if (!base || !whole) return;
  for (const config::Field& field : config::fields()) {
    const auto found = converted.values.find(field.key);
    if (found == converted.values.end() || is_always(field.key) ||
        config::value_text(field, base->config) != config::value_text(field, whole->config) ||
        field.key == "lora.rank")
      continue;
    const std::string from = found->second.from;
    converted.values.erase(found);
    // One setting can give two values.
    if (std::ranges::any_of(converted.values,
                            [&](const auto& each) { return each.second.from == from; }))
      continue;
    for (ReportLine& line : converted.lines)
      if (line.outcome == Outcome::became && line.setting == from)
        line.outcome = Outcome::already_default;
  }
}

// At most this much of a setting, and as many of them in a section: the file of another tool may
// have any size.
constexpr std::size_t max_shown_bytes = 400, max_shown_lines = 400;

std::string shortened(const std::string& text) {
  if (text.size() <= max_shown_bytes) return text;
  std::size_t end = max_shown_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return cat(text.substr(0, end), "... (", text.size(), " bytes)");
}

std::string comment(const std::string& from) {
  std::string text = from;
  std::ranges::replace(text, '\n', ' ');
  return text.empty() ? "" : cat("  # ", shortened(text));
}

/// The entries of data.columns or data.tags as one map.
void join_entries(Converted& converted, std::string_view key) {
  const std::string prefix = cat(key, '.');
  std::vector<std::string> entries, from;
  for (const auto& [name, value] : converted.values) {
    if (!name.starts_with(prefix)) continue;
    entries.push_back(cat(name.substr(prefix.size()), ": ", value.yaml));
    from.push_back(value.from);
  }
  std::erase_if(converted.values, [&](const auto& each) { return each.first.starts_with(prefix); });
  if (!entries.empty())
    converted.values[std::string(key)] = {cat('{', join(entries, ", "), '}'), join(from, ", ")};
}

std::string section_text(const Converted& converted, Outcome outcome, std::string_view title) {
  std::string text;
  std::size_t lines = 0;
  for (const ReportLine& line : converted.lines) {
    if (line.outcome != outcome || ++lines > max_shown_lines) continue;
    text += cat("  ", shortened(line.setting), "  ->  ", shortened(line.text), "\n");
  }
  if (lines > max_shown_lines) text += cat("  ... and ", lines - max_shown_lines, " more\n");
  return text.empty() ? "" : cat(title, ":\n", text);
}

}  // namespace

std::string run_file(Converted& converted, tables::Tool tool, const std::string& source) {
  join_entries(converted, "data.columns");
  join_entries(converted, "data.tags");
  drop_defaults(converted);
  std::string text = cat("# A run of ", tables::title_of(tool), ", converted from ", source,
                         " by troupe import.\nalgorithm: ", converted.algorithm, "\n");
  std::string section;
  for (const config::Field& field : config::fields()) {
    const auto found = converted.values.find(field.key);
    if (found == converted.values.end() || field.key == "algorithm") continue;
    const std::string_view of = config::section_of(field.key);
    if (of != section && !of.empty()) text += cat(of, ":\n");
    section = of;
    text += cat(of.empty() ? "" : "  ", of.empty() ? field.key : field.key.substr(of.size() + 1),
                ": ", found->second.yaml, comment(found->second.from), "\n");
  }
  return text;
}

std::string import_report(const Converted& converted, tables::Tool tool) {
  std::string text = section_text(converted, Outcome::became, "Converted");
  text += section_text(converted, Outcome::already_default, "Already the default");
  text += section_text(converted, Outcome::not_needed, "Not needed");
  text += section_text(converted, Outcome::no_equivalent, "Without an equivalent");
  text += section_text(converted, Outcome::unknown, cat("Not known of ", tables::title_of(tool)));
  text += section_text(converted, Outcome::not_evaluated, "Not evaluated, and not converted");
  text += section_text(converted, Outcome::unusable, "Not usable, and not converted");
  for (const std::string& note : converted.notes)
    text += cat(&note == &converted.notes.front() ? "Notes:\n" : "", "  ", shortened(note), "\n");
  return text;
}

}  // namespace troupe::launch::tools::migration
