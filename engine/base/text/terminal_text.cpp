#include "engine/base/text/terminal_text.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

namespace troupe {
namespace {

bool obeyed_or_disguising(char32_t value) {
  return (value >= 0x80 && value < 0xA0) || (value >= 0x202A && value <= 0x202E) ||
         (value >= 0x2066 && value <= 0x2069);
}

std::string unicode_escape(char32_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[(value >> shift) & 15];
  return out;
}

}  // namespace

std::string for_terminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::string_view character = text.substr(0, std::min(utf8_length(text[0]), text.size()));
    const bool control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
    if (control || !valid_utf8(character)) {
      out += hex_escape(first);
      text.remove_prefix(1);
      continue;
    }
    const char32_t value = code_point_at(character, 0).value;
    if (obeyed_or_disguising(value))
      out += unicode_escape(value);
    else
      out += character;
    text.remove_prefix(character.size());
  }
  return out;
}

std::string TerminalStream::add(std::string_view piece) {
  rest_ += piece;
  const std::size_t whole = complete_utf8_prefix(rest_);
  const std::string out = for_terminal(std::string_view(rest_).substr(0, whole));
  rest_.erase(0, whole);
  return out;
}

std::string TerminalStream::finish() {
  return for_terminal(std::exchange(rest_, {}));
}

}  // namespace troupe
