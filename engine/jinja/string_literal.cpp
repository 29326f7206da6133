// The escapes of string literals: Python's, as jinja2 reads them.
#include <algorithm>
#include <stdexcept>

#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/jinja/lexer.h"
#include "engine/jinja/value.h"

namespace troupe::engine::jinja {
namespace {

char32_t code_point(std::string_view digits, std::size_t wanted, int base, int line) {
  std::size_t used = 0;
  unsigned long value = 0;
  try {
    value = std::stoul(std::string(digits), &used, base);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != wanted || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    raise(cat("line ", line, ": the escape \\", quote(digits), " is no character"));
  return static_cast<char32_t>(value);
}

}  // namespace

std::string unescape(std::string_view text, int line) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    constexpr std::string_view names = "ntr\\'\"abfv", meanings = "\n\t\r\\'\"\a\b\f\v";
    const std::size_t hex_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (const auto known = names.find(c); known != std::string_view::npos) {
      out += meanings[known];
    } else if (hex_digits) {
      append_utf8(out, code_point(text.substr(std::min(i + 1, text.size()), hex_digits), hex_digits,
                                  16, line));
      i += hex_digits;
    } else if (c >= '0' && c <= '7') {
      std::size_t count = 1;
      while (count < 3 && i + count < text.size() && text[i + count] >= '0' &&
             text[i + count] <= '7')
        ++count;
      append_utf8(out, code_point(text.substr(i, count), count, 8, line));
      i += count - 1;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      const CodePoint point = code_point_at(
          text,
          i);  // jinja2 escapes what is beyond ASCII first, so the backslash meets its own kind
      out += to_ascii(std::string(text.substr(i, point.size))).substr(1);
      out.pop_back();
      i += point.size - 1;
    } else if (c == 'N') {
      raise(cat("line ", line, ": characters by name (\\N) are not read"));
    } else if (c != '\n') {
      out += '\\', out += c;
    }
  }
  return out;
}

}  // namespace troupe::engine::jinja
