#include "launch/tools/tables/page.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::launch::tools::tables {
namespace {

std::string quoted(std::string_view text) {
  return cat('`', text, '`');
}

std::string names_cell(const ToolKey& row) {
  std::vector<std::string> names;
  for (const auto name : row.names) names.push_back(quoted(name));
  return join(names, ", ");
}

std::string keys_cell(const ToolKey& row) {
  std::vector<std::string> keys;
  for (const Target& target : row.targets) {
    std::string key = quoted(target.key);
    if (!target.algorithm.empty()) key += cat(" (", target.algorithm, ")");
    keys.push_back(std::move(key));
  }
  for (const std::string& key : row.hand_written) keys.push_back(quoted(key));
  return join(keys, ", ");
}

std::string remark_cell(const ToolKey& row) {
  if (row.equivalent == Equivalent::built_in) return cat("not needed: ", row.remark);
  if (row.equivalent == Equivalent::none) return cat("no equivalent: ", row.remark);
  if (row.equivalent == Equivalent::by_hand) return cat("by hand: ", row.remark);
  std::vector<std::string> parts;
  if (const std::string rules = value_rules(row); !rules.empty()) parts.push_back(quoted(rules));
  if (!row.remark.empty()) parts.emplace_back(row.remark);
  return join(parts, "; ");
}

}  // namespace

std::string table_page(Tool tool) {
  std::string text;
  std::string_view section;
  for (const ToolKey& row : keys_of(tool)) {
    if (row.section != section)
      text += cat(section.empty() ? "" : "\n", "### ", row.section, "\n\n| ", title_of(tool),
                  " | troupe | remark |\n|---|---|---|\n");
    section = row.section;
    const std::string keys = keys_cell(row), remark = remark_cell(row);
    text += cat("| ", names_cell(row), " |", keys.empty() ? "" : " ", keys, " |",
                remark.empty() ? "" : " ", remark, " |\n");
  }
  return text;
}

}  // namespace troupe::launch::tools::tables
