#include "launch/config/data_config.h"

#include <vector>

#include "engine/base/text/text.h"

namespace troupe::launch::config {
namespace {

using Kind = YamlNode::Kind;

constexpr std::string_view tags_key = "tags";

// Column names of these tools, and ours.
constexpr std::pair<std::string_view, std::string_view> column_names[] = {
    {"prompt", "instruction"}, {"query", "input"},       {"response", "output"},
    {"history", "history"},    {"system", "system"},     {"chosen", "chosen"},
    {"rejected", "rejected"},  {"messages", "messages"}, {"tools", "tools"},
    {"kto_tag", "label"}};

std::string apply_tags(const YamlNode& node, DataConfig& data) {
  if (node.kind != Kind::map) return cat("tags: a map is expected, found ", to_string(node.kind));
  for (const auto& [name, value] : node.members) {
    if (value.kind != Kind::scalar)
      return cat("tags: ", name, ": a text is expected, found ", to_string(value.kind));
    data.tags[name] = value.text;
  }
  return "";
}

std::string apply_column(const std::string& name, const YamlNode& value, DataConfig& data) {
  std::vector<std::string> known{std::string(tags_key)};
  for (const auto& [theirs, ours] : column_names) {
    known.emplace_back(theirs);
    if (name != theirs) continue;
    if (value.kind != Kind::scalar && value.kind != Kind::null)
      return cat(name, ": a text is expected, found ", to_string(value.kind));
    data.columns[std::string(ours)] = value.kind == Kind::null ? "" : value.text;
    return "";
  }
  const auto near = nearest(name, known);
  return cat("the key ", quote(name), " is unknown",
             near.empty() ? "" : "; did you mean " + near + "?", " Known: ", join(known, ", "));
}

}  // namespace

std::string apply_map_keys(const YamlNode& node, DataConfig& data) {
  if (node.kind == Kind::scalar) {
    const auto parsed = parse_yaml(node.text, "data.map_keys");
    if (!parsed) return parsed.error().what;
    if (parsed->kind != Kind::scalar) return apply_map_keys(*parsed, data);
  }
  if (node.kind != Kind::map) return cat("a map is expected, found ", to_string(node.kind));
  for (const auto& [name, value] : node.members) {
    const std::string why =
        name == tags_key ? apply_tags(value, data) : apply_column(name, value, data);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace troupe::launch::config
