#include "actors/roles/rules/math_number.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "actors/roles/rules/math_scan.h"
#include "engine/base/text/parse.h"

namespace troupe::actors::rules {
namespace {

struct Spelling {
  std::string_view from, to;
};

// The first match wins, so longer spellings precede their prefixes.
constexpr std::array<Spelling, 24> spellings{{{"\\left", ""},
                                              {"\\right", ""},
                                              {"\\dfrac", "\\frac"},
                                              {"\\tfrac", "\\frac"},
                                              {"\\cfrac", "\\frac"},
                                              {"\\$", ""},
                                              {"$", ""},
                                              {"\\!", ""},
                                              {"\\,", ""},
                                              {"\\;", ""},
                                              {"\\:", ""},
                                              {"\\ ", ""},
                                              {"~", ""},
                                              {"\\quad", ""},
                                              {"\\%", "%"},
                                              {"^{\\circ}", ""},
                                              {"^\\circ", ""},
                                              {"\\degree", ""},
                                              {"\\mathrm", "\\text"},
                                              {"\\mbox", "\\text"},
                                              {"\\textbf", "\\text"},
                                              {"\\mathbf", "\\text"},
                                              {"\xc2\xb0", ""},
                                              {"\xe2\x88\x92", "-"}}};

std::string respelled(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    bool matched = false;
    for (const auto& s : spellings) {
      // \left must not eat the head of \leftarrow, \quad that of \quadruple.
      const bool word = is_letter(s.from.back()) && s.from.size() < text.size() &&
                        is_letter(text[s.from.size()]) && s.to.empty();
      if (word || !take(text, s.from)) continue;
      out += s.to;
      matched = true;
      break;
    }
    if (matched) continue;
    if (!is_space(text.front()))
      out += text.front();
    else if (!out.empty() && is_word(out.back()) && text.size() > 1 && is_word(text[1]))
      out += ' ';
    text.remove_prefix(1);
  }
  return out;
}

// \text{...} and bare braces around the whole of it.
std::string_view unwrapped(std::string_view text) {
  for (int layer = 0; layer < 8; ++layer) {
    std::string_view inner = text;
    take(inner, "\\text");
    const auto content = inner.starts_with('{') ? braced(inner) : std::nullopt;
    if (!content || content->size() + 2 != inner.size()) break;
    text = trimmed(*content);
  }
  return text;
}

// "x = 5" is 5: at most two letters before the only equals sign.
std::string_view right_of_equals(std::string_view text) {
  const auto at = text.find('=');
  if (at == std::string_view::npos || at > 2 || text.find('=', at + 1) != std::string_view::npos)
    return text;
  return trimmed(text.substr(at + 1));
}

struct Plain {
  double value = 0;
  std::string integer;
};

// Takes digits with thousands separated, or not, from the front; `digits` receives them without
// commas.
bool take_digits(std::string_view& text, std::string& digits) {
  const auto run = [&](std::size_t from) {
    auto end = from;
    while (end < text.size() && is_digit(text[end])) ++end;
    return end - from;
  };
  auto length = run(0);
  digits.append(text.substr(0, length));
  const bool grouped = length >= 1 && length <= 3;
  text.remove_prefix(length);
  while (grouped && text.starts_with(',') && run(1) == 3) {
    digits.append(text.substr(1, 3));
    text.remove_prefix(4);
  }
  return length > 0;
}

// e5, E-3: at most four digits.
bool take_exponent(std::string_view& text, std::string& digits) {
  if (!text.starts_with('e') && !text.starts_with('E')) return false;
  std::string_view rest = text.substr(1);
  std::string exponent = take(rest, "-") ? "e-" : "e";
  if (exponent == "e") take(rest, "+");
  const auto length = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (length == 0 || length > 4) return false;
  digits.append(exponent).append(rest.substr(0, length));
  text = rest.substr(length);
  return true;
}

// A decimal number from the front of `text`, without sign.
std::optional<Plain> take_plain(std::string_view& text) {
  std::string digits;
  std::string_view rest = text;
  const bool whole = take_digits(rest, digits);
  bool integer = whole;
  if (rest.starts_with('.') && rest.size() > 1 && is_digit(rest[1])) {
    integer = false;
    digits += '.';
    for (rest.remove_prefix(1); !rest.empty() && is_digit(rest.front()); rest.remove_prefix(1))
      digits += rest.front();
  } else if (whole && rest == ".") {
    rest.remove_prefix(1);
  } else if (!whole) {
    return std::nullopt;
  }
  if (take_exponent(rest, digits)) integer = false;
  Plain out;
  const auto parsed = parse_number<double>(digits);
  if (!parsed) return std::nullopt;
  out.value = *parsed;
  if (integer)
    out.integer = digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  text = rest;
  return out;
}

bool take_minus(std::string_view& text) {
  const bool minus = take(text, "-");
  if (!minus) take(text, "+");
  return minus;
}

// {a} or a single digit, as \frac's arguments are.
std::optional<double> take_argument(std::string_view& text) {
  std::string_view inside = text.substr(0, 1);
  std::size_t used = 1;
  if (text.starts_with('{')) {
    const auto content = braced(text);
    if (!content) return std::nullopt;
    inside = trimmed(*content);
    used = content->size() + 2;
  }
  const bool minus = take_minus(inside);
  const auto number = take_plain(inside);
  if (!number || !inside.empty()) return std::nullopt;
  text.remove_prefix(used);
  return minus ? -number->value : number->value;
}

std::optional<double> take_frac(std::string_view& text) {
  std::string_view rest = text;
  if (!take(rest, "\\frac")) return std::nullopt;
  const auto above = take_argument(rest), below = above ? take_argument(rest) : std::nullopt;
  if (!below || *below == 0) return std::nullopt;
  text = rest;
  return *above / *below;
}

// Words that change the number before them, and so are no units.
constexpr std::array<std::string_view, 7> multipliers{"pi",      "hundred",  "thousand", "million",
                                                      "billion", "trillion", "dozen"};

// A unit: nothing, \text{...} with a small power, or separate words ("5 cm", "3 square feet", not
// "2x" or "2 pi").
bool is_unit(std::string_view text) {
  if (text.empty()) return true;
  if (take(text, "\\text")) {
    const auto content = text.starts_with('{') ? braced(text) : std::nullopt;
    if (!content) return false;
    text.remove_prefix(content->size() + 2);
    return text.empty() || text == "^2" || text == "^3" || text == "^{2}" || text == "^{3}";
  }
  if (!take(text, " ") || text.size() < 2 || text.size() > 40) return false;
  const auto stray =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ /^23.");
  const auto first = text.substr(0, text.find(' '));
  return is_letter(text.front()) && stray == text.npos &&
         std::find(multipliers.begin(), multipliers.end(), first) == multipliers.end();
}

}  // namespace

std::string normalize_math(std::string_view answer) {
  const std::string text = respelled(trimmed(answer));
  std::string_view view = unwrapped(right_of_equals(unwrapped(trimmed(text))));
  if (view.size() > 1 && view.ends_with('.') && !view.ends_with("..")) view.remove_suffix(1);
  return std::string(trimmed(view));
}

std::optional<Number> read_number(std::string_view text) {
  const bool minus = take_minus(text);
  Number out;
  auto whole = take_plain(text);
  if (whole) {
    out.value = whole->value;
    out.integer = whole->integer;
    if (text.starts_with('/')) {
      std::string_view rest = text.substr(1);
      const auto below = take_plain(rest);
      if (!below || below->value == 0) return std::nullopt;
      out.value /= below->value;
      out.integer.clear();
      text = rest;
    } else if (text.starts_with("\\frac") && !out.integer.empty()) {
      const auto part = take_frac(text);
      if (!part) return std::nullopt;
      out.value += *part;
      out.integer.clear();
    }
  } else if (const auto fraction = take_frac(text)) {
    out.value = *fraction;
  } else {
    return std::nullopt;
  }
  out.percent = take(text, "%");
  if (!is_unit(text)) return std::nullopt;
  if (minus) out.value = -out.value;
  if (minus && !out.integer.empty() && out.integer != "0") out.integer.insert(0, 1, '-');
  return out;
}

}  // namespace troupe::actors::rules
