// Numbers and texts in fields (Python's format specification,
// docs.python.org/3/library/string.html).
#include "engine/jinja/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/repr.h"

namespace troupe::engine::jinja {
namespace {

constexpr int max_precision = 1000;

std::string pad(Runtime& runtime, const FieldStyle& style, const std::string& sign,
                const std::string& body, char otherwise) {
  const std::size_t size = count_code_points(sign) + count_code_points(body);
  const std::size_t missing = style.width > size ? style.width - size : 0;
  runtime.reserve(sign.size() + body.size() + missing * style.fill.size());
  const char align = style.align ? style.align : otherwise;
  const std::size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto fill = [&](std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += style.fill;
    return out;
  };
  if (align == '=') return sign + fill(missing) + body;
  return fill(left) + sign + body + fill(missing - left);
}

std::string grouped(const std::string& digits, char mark, std::size_t every) {
  if (!mark) return digits;
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % every == 0) out += mark;
    out += digits[i];
  }
  return out;
}

std::string digits_of(std::uint64_t value, unsigned base, bool capital) {
  const std::string_view figures = capital ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out += figures[value % base];
    value /= base;
  } while (value);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string sign_of(const FieldStyle& style, bool negative) {
  return negative ? "-" : style.sign == '-' ? "" : std::string(1, style.sign);
}

// Leading zeros count towards the width together with the separators between them.
std::string zero_filled(const FieldStyle& style, std::string whole, std::size_t taken,
                        std::size_t every) {
  const bool fills = style.grouping && style.fill == "0" && style.align == '=';
  if (fills && style.width > taken) {
    require_text(style.width);
    const std::size_t room = style.width - taken;
    // The fewest digits that take all of the room with their separators.
    std::size_t digits = room - room / (every + 1);
    if (digits + (digits - 1) / every < room) ++digits;
    if (digits > whole.size()) whole.insert(0, digits - whole.size(), '0');
    work(2 * room);
  }
  return grouped(whole, style.grouping, every);
}

std::string printed(char kind, bool alternate, int precision, double value) {
  const std::string spec = cat(alternate ? "%#.*" : "%.*", kind);
  const int size = std::snprintf(nullptr, 0, spec.c_str(), precision, value);
  std::string out(static_cast<std::size_t>(size), '\0');
  std::snprintf(out.data(), out.size() + 1, spec.c_str(), precision, value);
  return out;
}

// Digits of a finite number without its sign.
std::string real_digits(const FieldStyle& style, double value) {
  const int precision = style.precision < 0 ? 6 : style.precision;
  if (style.kind == '%') return printed('f', style.alternate, precision, value * 100) + "%";
  if (style.kind == 'n') return printed('g', style.alternate, precision, value);
  if (style.kind) return printed(style.kind, style.alternate, precision, value);
  if (style.precision < 0) return real_to_string(value);
  // Without a kind: like g, but with a digit after the point, and an exponent one digit earlier.
  const int wanted = std::max(style.precision, 1);
  const std::string scientific = printed('e', false, wanted - 1, value);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  std::string out = printed('g', false, wanted, value);
  const bool small = value != 0 && exponent >= wanted - 1;
  if (small && out.find('e') == std::string::npos) {
    std::string mantissa = scientific.substr(0, scientific.find('e'));
    if (mantissa.find('.') != std::string::npos) {
      while (mantissa.ends_with('0')) mantissa.pop_back();
      if (mantissa.ends_with('.')) mantissa.pop_back();
    }
    return mantissa + scientific.substr(scientific.find('e'));
  }
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

}  // namespace

std::string format_integer(Runtime& runtime, const FieldStyle& style, std::int64_t value) {
  const char kind = style.kind ? style.kind : 'd';
  const bool negative = value < 0;
  const std::uint64_t size =
      negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  if (kind == 'c') {
    if (negative || size > 0x10FFFF || (size >= 0xD800 && size < 0xE000))
      raise("%c arg not in range(0x110000)");
    std::string out;
    append_utf8(out, static_cast<char32_t>(size));
    return pad(runtime, style, "", out, '<');
  }
  const unsigned base = kind == 'x' || kind == 'X' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  std::string digits = digits_of(size, base, kind == 'X');
  if (style.precision > max_precision) raise("a precision that is too large");
  if (style.precision > static_cast<int>(digits.size()))
    digits.insert(0, static_cast<std::size_t>(style.precision) - digits.size(), '0');
  const std::string sign =
      sign_of(style, negative) + (style.alternate && base != 10 ? std::string("0") + kind : "");
  return pad(runtime, style, sign, zero_filled(style, digits, sign.size(), base == 10 ? 3 : 4),
             '>');
}

std::string format_real(Runtime& runtime, const FieldStyle& style, double value) {
  if (style.precision > max_precision) raise("a precision that is too large");
  const bool capital = style.kind == 'F' || style.kind == 'E' || style.kind == 'G';
  const std::string sign = sign_of(style, std::signbit(value) && !std::isnan(value));
  if (!std::isfinite(value)) {
    const std::string name = std::isnan(value) ? (capital ? "NAN" : "nan")
                             : capital         ? "INF"
                                               : "inf";
    return pad(runtime, style, sign, style.kind == '%' ? name + "%" : name, '>');
  }
  const std::string digits = real_digits(style, std::fabs(value));
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  const std::string rest = digits.substr(whole);
  return pad(runtime, style, sign,
             zero_filled(style, digits.substr(0, whole), sign.size() + rest.size(), 3) + rest, '>');
}

std::string format_text(Runtime& runtime, const FieldStyle& style, const std::string& text) {
  std::size_t end = 0;
  for (int left = style.precision; end < text.size() && left != 0; --left)
    end += utf8_length(text[end]);
  return pad(runtime, style, "", style.precision < 0 ? text : text.substr(0, end), '<');
}

}  // namespace troupe::engine::jinja
