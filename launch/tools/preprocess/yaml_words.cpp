#include "launch/tools/preprocess/yaml_words.h"

#include <algorithm>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/config/yaml.h"

namespace troupe::launch::tools::preprocess {
namespace {

constexpr std::size_t max_file_bytes = 1u << 20;

Json json_of_node(const config::YamlNode& node) {
  switch (node.kind) {
    case config::YamlNode::Kind::null:
      return {};
    case config::YamlNode::Kind::scalar:
      return node.text;
    case config::YamlNode::Kind::list: {
      Json::Array items;
      for (const config::YamlNode& item : node.items) items.push_back(json_of_node(item));
      return items;
    }
    case config::YamlNode::Kind::map:
      break;
  }
  Json::Object members;
  for (const config::YamlMember& member : node.members)
    members.emplace_back(member.name, json_of_node(member.value));
  return members;
}

bool is_word(const config::YamlNode& node, std::string_view word) {
  return node.kind == config::YamlNode::Kind::scalar && !node.quoted &&
         ascii_lower(node.text) == word;
}

// The words of one key. A value that begins with a dash belongs to its option by "=".
Result<> add_words(const config::YamlMember& member, const std::string& path,
                   std::vector<std::string>& to) {
  std::string name = "--" + member.name;
  std::ranges::replace(name, '_', '-');
  const config::YamlNode& value = member.value;
  const auto add = [&](const std::string& text) { to.push_back(name + "=" + text); };
  if (value.kind == config::YamlNode::Kind::null || is_word(value, "false")) return {};
  if (is_word(value, "true")) {
    to.push_back(name);
  } else if (value.kind == config::YamlNode::Kind::scalar) {
    add(value.text);
  } else if (value.kind == config::YamlNode::Kind::map) {
    add(json_of_node(value).dump());
  } else {
    for (const config::YamlNode& item : value.items) {
      if (item.kind != config::YamlNode::Kind::scalar)
        return fail(Errc::usage,
                    cat(path, ":", item.line, ": ", member.name,
                        ": expected a list of names, found ", config::to_string(item.kind)));
      add(item.text);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> preprocess_words(const std::string& path) {
  const auto text = read_file(path, max_file_bytes);
  RETURN_IF_ERROR(text);
  const auto root = config::parse_yaml(*text, path);
  RETURN_IF_ERROR(root);
  if (root->kind != config::YamlNode::Kind::map)
    return fail(Errc::usage,
                cat(path, ": expected keys and values, found ", config::to_string(root->kind)));
  std::vector<std::string> out;
  for (const config::YamlMember& member : root->members)
    RETURN_IF_ERROR(add_words(member, path, out));
  return out;
}

}  // namespace troupe::launch::tools::preprocess
