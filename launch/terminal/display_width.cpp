#include "launch/terminal/display_width.h"

#include "engine/base/text/character_classes.h"
#include "engine/base/text/utf8.h"

namespace troupe::launch::terminal {

std::size_t display_width(std::string_view text) {
  const std::string whole = repair_utf8(text);
  std::size_t columns = 0;
  for (std::size_t at = 0; at < whole.size();) {
    const CodePoint point = code_point_at(whole, at);
    columns += static_cast<std::size_t>(terminal_columns(point.value));
    at += point.size;
  }
  return columns;
}

std::string_view fit_width(std::string_view text, std::size_t columns) {
  std::size_t used = 0, at = 0;
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    used += static_cast<std::size_t>(terminal_columns(point.value));
    if (used > columns) break;
    at += point.size;
  }
  return text.substr(0, at);
}

std::string one_line(std::string_view text) {
  std::string out = repair_utf8(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

}  // namespace troupe::launch::terminal
