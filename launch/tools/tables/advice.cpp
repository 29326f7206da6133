#include "launch/tools/tables/advice.h"

#include <algorithm>
#include <set>

#include "engine/base/text/text.h"
#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::tools::tables {
namespace {

struct Found {
  Tool tool;
  const ToolKey* row;
  std::string name;
};

std::string_view last_of(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(dot + 1);
}

std::string_view section_in(std::string_view name) {
  const auto dot = name.find('.');
  return dot == name.npos ? std::string_view{} : name.substr(0, dot);
}

/// The rows of every tool for exactly this name.
std::vector<Found> rows_named(const std::string& name) {
  std::vector<Found> out;
  for (const Tool tool : all_tools)
    for (const ToolKey* row : find_rows(tool, name)) out.push_back({tool, row, name});
  return out;
}

/// The rows of names that end with ".name": verl's actor_rollout_ref.actor.optim.lr for lr.
std::vector<Found> rows_ending_in(const std::string& name) {
  std::vector<Found> out;
  for (const Tool tool : all_tools)
    for (const ToolKey& row : keys_of(tool))
      for (const auto each : row.names)
        if (each.ends_with("." + name)) out.push_back({tool, &row, std::string(each)});
  return out;
}

std::vector<Found> find(std::string_view key) {
  const std::string name = normal_name(key), last(last_of(name));
  std::string joined = name;
  std::ranges::replace(joined, '.', '_');
  std::vector<Found> found = rows_named(name);
  if (found.empty() && last != name) found = rows_ending_in(name);
  if (!found.empty()) return found;
  for (const std::string& form : {last, joined})
    for (Found& each : rows_named(form)) found.push_back(std::move(each));
  return found.empty() ? rows_ending_in(last) : found;
}

/// The keys of ours that a row can mean for this run.
std::vector<std::string> keys_meant(const ToolKey& row, std::string_view section,
                                    const ReadsKey& reads) {
  std::vector<std::string> all, read, near;
  for (const Target& target : row.targets) {
    const std::string key(target.key);
    if (std::ranges::find(all, key) != all.end()) continue;
    all.push_back(key);
    if (reads && reads(key)) read.push_back(key);
    if (section_in(key) == section) near.push_back(key);
  }
  return !near.empty() ? near : !read.empty() ? read : all;
}

std::string answer(const ToolKey& row, const std::vector<std::string>& keys) {
  if (row.equivalent == Equivalent::built_in) return cat("not needed: ", row.remark);
  if (row.equivalent == Equivalent::none) return cat("no equivalent: ", row.remark);
  if (row.equivalent == Equivalent::by_hand)
    return cat("write ", join(row.hand_written, " or "), ": ", row.remark);
  const std::string rules = value_rules(row);
  std::string text = cat("write ", join(keys, " or "));
  if (!rules.empty()) text += cat(" (", rules, ")");
  if (!row.remark.empty()) text += cat("; ", row.remark);
  return text;
}

/// True if another row names keys that the run's method reads and this one has none.
bool serves(const ToolKey& row, std::string_view section, const ReadsKey& reads) {
  return std::ranges::any_of(row.targets, [&](const Target& target) {
    return section_in(target.key) == section || (reads && reads(target.key));
  });
}

}  // namespace

std::string advice(std::string_view name, const ReadsKey& reads) {
  const std::string_view section = section_in(name);
  std::vector<Found> found = find(name);
  const auto useful = [&](const Found& each) { return serves(*each.row, section, reads); };
  if (std::ranges::any_of(found, useful))
    std::erase_if(found, [&](const Found& each) {
      return each.row->equivalent == Equivalent::setting && !useful(each);
    });
  std::vector<std::pair<std::string, std::vector<std::string>>> answers;
  const std::string normal = normal_name(name), plain(last_of(normal));
  for (const Found& each : found) {
    const std::string text = answer(*each.row, keys_meant(*each.row, section, reads));
    auto same = std::ranges::find(answers, text, [](const auto& pair) { return pair.first; });
    if (same == answers.end()) same = answers.insert(answers.end(), {text, {}});
    const bool as_given = each.name == normal || each.name == plain;
    const std::string who =
        as_given ? std::string(title_of(each.tool)) : cat(title_of(each.tool), "'s ", each.name);
    if (std::ranges::find(same->second, who) == same->second.end()) same->second.push_back(who);
  }
  std::vector<std::string> parts;
  for (const auto& [text, tools] : answers) parts.push_back(cat(join(tools, ", "), ": ", text));
  return join(parts, "; ");
}

std::string algorithm_advice(std::string_view algorithm) {
  for (const Tool tool : all_tools)
    for (const ToolKey& row : keys_of(tool)) {
      if (row.targets.empty() || row.targets[0].key != "algorithm") continue;
      for (const auto& [theirs, ours] : row.values) {
        if (theirs != algorithm || ours.starts_with('!') || ours.empty() || theirs == ours)
          continue;
        const auto name = pieces(ours, ',')[0];
        return cat(title_of(tool), "'s ", theirs, " is ",
                   name.starts_with("algorithm:") ? name.substr(10) : name);
      }
    }
  return "";
}

}  // namespace troupe::launch::tools::tables
