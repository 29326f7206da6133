// Character classes and scanners for mathematical answers.
#pragma once

#include <optional>
#include <string_view>

#include "engine/base/text/parse.h"

namespace troupe::actors::rules {

constexpr bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
constexpr bool is_digit(char c) {
  return '0' <= c && c <= '9';
}
constexpr bool is_letter(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
}
constexpr bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

constexpr std::string_view trimmed(std::string_view text) {
  return trim(text, " \t\n\r\f\v");
}

constexpr bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Returns the text between the '{' that `text` starts with and its matching '}', or nullopt.
/// Ignores escaped braces.
constexpr std::optional<std::string_view> braced(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '{')
      ++depth;
    else if (text[i] == '}' && --depth == 0)
      return text.substr(1, i - 1);
  }
  return std::nullopt;
}

}  // namespace troupe::actors::rules
