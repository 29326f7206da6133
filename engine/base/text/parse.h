// Reading of text: numbers, parts between separators, ASCII letters, whatever the locale.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The number that the whole text is, as std::from_chars reads it: without blanks and sign +.
/// nullopt for other text, and for a number beyond the range of the type.
template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::floating_point<Number>)
    read = std::from_chars(text.data(), end, number);
  else
    read = std::from_chars(text.data(), end, number, base);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

/// Without the blanks at both ends.
constexpr std::string_view trim(std::string_view text, std::string_view blanks = " ") {
  const auto begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

/// The texts between separators, one more than there are separators: {""} for an empty text.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (auto at = text.find(separator); at != text.npos; at = text.find(separator)) {
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  out.push_back(text);
  return out;
}

/// A to Z as a to z; other bytes as they are.
inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace troupe
