#include "launch/evaluation/python_text.h"

#include <algorithm>

#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/repr.h"

namespace troupe::launch::evaluation {

namespace jinja = engine::jinja;

Result<Regex> python_regex(std::string_view pattern, std::string_view where) {
  return Regex::compile(pattern, where, engine::tokenizer::RegexSyntax::python);
}

Result<std::string> substitute(const Regex& pattern, std::string_view text, std::string_view with) {
  const auto matches = pattern.find_groups(text);
  RETURN_IF_ERROR(matches);
  std::string out;
  std::size_t at = 0;
  for (const auto& match : *matches) {
    out += text.substr(at, match[0].begin - at);
    out += with;
    at = match[0].end;
  }
  return out += text.substr(at);
}

std::size_t count_words(std::string_view text) {
  std::size_t pieces = 1;
  bool in_space = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const bool space = jinja::is_python_space(point.value);
    if (space && !in_space) ++pieces;
    in_space = space;
    at += point.size;
  }
  return pieces;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view with) {
  std::string out;
  for (;;) {
    const std::size_t found = text.find(old);
    out += text.substr(0, found);
    if (found == std::string_view::npos) return out;
    out += with;
    text.remove_prefix(found + old.size());
  }
}

std::string stripped(const std::string& text) {
  return jinja::strip_text(text, nullptr, true, true);
}
std::string right_stripped(const std::string& text) {
  return jinja::strip_text(text, nullptr, false, true);
}

bool begins_with_space(std::string_view text) {
  return !text.empty() && jinja::is_python_space(code_point_at(text, 0).value);
}
bool ends_with_space(std::string_view text) {
  if (text.empty()) return false;
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return jinja::is_python_space(code_point_at(text, at).value);
}

std::string python_text(const Json& value) {
  return jinja::to_string(jinja::Value::from_json(value));
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace troupe::launch::evaluation
