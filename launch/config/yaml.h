// YAML (and so JSON) as a small tree with line numbers. yaml-cpp is fenced in yaml.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::launch::config {

struct YamlMember;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;     ///< of a scalar, as written (quotes and escapes resolved)
  bool quoted = false;  ///< a scalar in quotes is text, never null
  int line = 0;         ///< counts from 1
  std::vector<YamlNode> items;
  std::vector<YamlMember> members;  ///< in the file's order
};

struct YamlMember {
  std::string name;
  YamlNode value;
};

const char* to_string(YamlNode::Kind kind);

/// Parses one document. Refuses, with the line: malformed text, more than one document, more than 1
/// MiB, nesting beyond 16, duplicate keys, keys that are not text, tags, and anchors and aliases (a
/// few lines of them expand to gigabytes). `where` starts each message. Errc::usage.
Result<YamlNode> parse_yaml(std::string_view text, const std::string& where);

}  // namespace troupe::launch::config
