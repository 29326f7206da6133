#include "launch/tools/preprocess/yaml_words.h"

#include <algorithm>

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "launch/config/yaml.h"

namespace troupe::launch {
namespace {

constexpr std::size_t max_file_bytes = 1u << 20;

Json json_of_node(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return {};
    case YamlNode::Kind::scalar:
      return node.text;
    case YamlNode::Kind::list: {
      Json::Array items;
      for (const YamlNode& item : node.items) items.push_back(json_of_node(item));
      return items;
    }
    case YamlNode::Kind::map:
      break;
  }
  Json::Object members;
  for (const YamlMember& member : node.members)
    members.emplace_back(member.name, json_of_node(member.value));
  return members;
}

bool is_word(const YamlNode& node, std::string_view word) {
  std::string lower = node.text;
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return node.kind == YamlNode::Kind::scalar && !node.quoted && lower == word;
}

// The words of one key. A value that begins with a dash belongs to its option by "=".
Result<> add_words(const YamlMember& member, const std::string& path,
                   std::vector<std::string>& to) {
  std::string name = "--" + member.name;
  std::ranges::replace(name, '_', '-');
  const YamlNode& value = member.value;
  const auto add = [&](const std::string& text) { to.push_back(name + "=" + text); };
  if (value.kind == YamlNode::Kind::null || is_word(value, "false")) return {};
  if (is_word(value, "true")) {
    to.push_back(name);
  } else if (value.kind == YamlNode::Kind::scalar) {
    add(value.text);
  } else if (value.kind == YamlNode::Kind::map) {
    add(json_of_node(value).dump());
  } else {
    for (const YamlNode& item : value.items) {
      if (item.kind != YamlNode::Kind::scalar)
        return fail(Errc::usage, cat(path, ":", item.line, ": ", member.name,
                                     ": expected a list of names, found ", to_string(item.kind)));
      add(item.text);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> preprocess_words(const std::string& path) {
  const auto text = read_file(path, max_file_bytes);
  RETURN_IF_ERROR(text);
  const auto root = parse_yaml(*text, path);
  RETURN_IF_ERROR(root);
  if (root->kind != YamlNode::Kind::map)
    return fail(Errc::usage,
                cat(path, ": expected keys and values, found ", to_string(root->kind)));
  std::vector<std::string> out;
  for (const YamlMember& member : root->members) RETURN_IF_ERROR(add_words(member, path, out));
  return out;
}

}  // namespace troupe::launch
