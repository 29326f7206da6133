#include "launch/tools/tables/tool_table.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/tools/tables/tool_texts.h"

namespace troupe::launch::tools::tables {
namespace {

/// Fields between bars, empty ones included.
std::vector<std::string_view> fields_of_row(std::string_view row) {
  std::vector<std::string_view> out = split(row, '|');
  for (auto& field : out) field = trim(field);
  out.resize(5);
  return out;
}

void read_values(std::string_view text, ToolKey& row) {
  row.copies = text.empty();
  for (const auto word : pieces(text, ' ')) {
    const auto equals = word.find('=');
    if (word == "*")
      row.copies = true;
    else if (word.starts_with('@'))
      row.converter = word.substr(1);
    else
      row.values.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
}

ToolKey row_of(const std::vector<std::string_view>& fields, std::string_view section) {
  ToolKey row;
  row.section = section;
  for (const auto name : pieces(fields[0], ','))
    row.names.push_back(name.substr(0, name.find(':')));
  if (fields[1] == "=" || fields[1].starts_with("-") || fields[1].starts_with("~")) {
    row.refused = fields[1].starts_with("-!");
    const auto keys = pieces(fields[1].substr(row.refused ? 2 : 1), ',');
    row.equivalent = fields[1] == "="      ? Equivalent::built_in
                     : fields[1][0] == '-' ? Equivalent::none
                                           : Equivalent::by_hand;
    auto& list = row.equivalent == Equivalent::none ? row.absent : row.hand_written;
    list.assign(keys.begin(), keys.end());
    row.remark = fields[2];
    return row;
  }
  for (const auto target : pieces(fields[1], ',')) {
    const auto colon = target.find(':');
    row.targets.push_back(colon == target.npos
                              ? Target{"", target}
                              : Target{target.substr(0, colon), target.substr(colon + 1)});
  }
  read_values(fields[2], row);
  row.remark = fields[3];
  row.tool_default = fields[4];
  return row;
}

/// The flags among the names of a row.
void add_flags(const std::vector<std::string_view>& fields, std::string_view section,
               std::vector<MegatronFlag>& flags) {
  MegatronFlag flag{.section = section};
  std::string_view names = fields[0];
  if (names.starts_with('>')) {
    names.remove_prefix(1);
    const auto blank = std::min(fields[1].find(' '), fields[1].size());
    constexpr auto rules = names_of(FlagRule{});
    const auto rule = std::ranges::find(rules, fields[1].substr(0, blank));
    check(rule != rules.end(), "the tables of tools: expected a rule for flags");
    flag.rule = static_cast<FlagRule>(rule - rules.begin());
    flag.argument = trim(fields[1].substr(blank));
    flag.remark = fields[2];
    flag.otherwise = fields[3];
  }
  for (const auto name : pieces(names, ',')) {
    const auto colon = name.find(':');
    if (colon == name.npos) continue;
    MegatronFlag& made = flags.emplace_back(flag);
    made.name = name.substr(0, colon);
    if (flag.rule == FlagRule::import) std::ranges::replace(made.name, '_', '-');
    made.count = name.substr(colon + 1, 1);
    if (const auto own = trim(name.substr(colon + 2)); !own.empty()) made.argument = own;
  }
}

struct Table {
  std::vector<ToolKey> keys;
  std::vector<MegatronFlag> flags;
};

Table table_of(std::initializer_list<std::string_view> texts) {
  Table table;
  for (const auto text : texts) {
    std::string_view section;
    for (const auto line : pieces(text, '\n')) {
      if (line.starts_with("# ")) {
        section = line.substr(2);
        continue;
      }
      const auto fields = fields_of_row(line);
      add_flags(fields, section, table.flags);
      if (!line.starts_with('>')) table.keys.push_back(row_of(fields, section));
    }
  }
  return table;
}

const Table& table_of(Tool tool) {
  static const std::array<Table, 5> tables{table_of({trl_text, trainer_arguments_text}),
                                           table_of({llama_factory_text, trainer_arguments_text}),
                                           table_of({verl_text}), table_of({openrlhf_text}),
                                           table_of({mindspeed_text, megatron_flags_text})};
  return tables[static_cast<std::size_t>(tool)];
}

std::string assignment(std::string_view value) {
  const auto colon = value.find(':');
  return colon == value.npos ? std::string(value)
                             : cat(value.substr(0, colon), ": ", value.substr(colon + 1));
}

}  // namespace

std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (const auto piece : split(text, separator))
    if (!trim(piece).empty()) out.push_back(trim(piece));
  return out;
}

std::string_view title_of(Tool tool) {
  static constexpr std::array<std::string_view, 5> titles{"TRL", "LLaMA-Factory", "verl",
                                                          "OpenRLHF", "MindSpeed"};
  return titles[static_cast<std::size_t>(tool)];
}

std::span<const ToolKey> keys_of(Tool tool) {
  return table_of(tool).keys;
}

std::span<const MegatronFlag> megatron_flags() {
  return table_of(Tool::mindspeed).flags;
}

std::string normal_name(std::string_view name) {
  while (name.starts_with('-') || name.starts_with('+') || name.starts_with('~'))
    name.remove_prefix(1);
  std::string out(name);
  std::ranges::replace(out, '-', '_');
  return out;
}

bool means(std::string_view pattern, std::string_view name) {
  const auto star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  const auto begin = pattern.substr(0, star), end = pattern.substr(star + 1);
  return name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
}

std::vector<const ToolKey*> find_rows(Tool tool, std::string_view name) {
  std::vector<const ToolKey*> exact, by_pattern;
  for (const ToolKey& row : keys_of(tool)) {
    if (std::ranges::find(row.names, name) != row.names.end())
      exact.push_back(&row);
    else if (std::ranges::any_of(row.names, [&](auto each) { return means(each, name); }))
      by_pattern.push_back(&row);
  }
  return exact.empty() ? by_pattern : exact;
}

bool is_tool_section(std::string_view name) {
  static constexpr std::array<std::string_view, 6> of_mindspeed{
      "megatron_training", "actor_config",    "critic_config",
      "reward_config",     "generate_config", "rl_config"};
  if (std::ranges::find(of_mindspeed, name.substr(0, name.find('.'))) != of_mindspeed.end())
    return true;
  const std::string begin = cat(name, '.');
  for (const Tool tool : all_tools)
    for (const ToolKey& row : keys_of(tool))
      for (const auto each : row.names)
        if (each.starts_with(begin)) return true;
  return false;
}

std::string value_rules(const ToolKey& row) {
  std::vector<std::string> rules;
  for (const auto& [theirs, ours] : row.values) {
    if (theirs == ours) continue;
    std::vector<std::string> set;
    for (const auto each : pieces(ours, ours.starts_with('[') ? '\n' : ','))
      set.push_back(assignment(each));
    rules.push_back(cat(theirs, ": ",
                        ours.empty()                  ? "the default"
                        : ours == "!" || ours == "!!" ? "no equivalent"
                                                      : join(set, " and ")));
  }
  return join(rules, "; ");
}

}  // namespace troupe::launch::tools::tables
