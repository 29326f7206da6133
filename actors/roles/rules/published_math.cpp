#include "actors/roles/rules/published_math.h"

#include <algorithm>

#include "actors/roles/rules/math_scan.h"

namespace troupe::actors::rules {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (auto at = text.find(from); at != text.npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

// The first code point, which is a character in Python.
std::string_view first_character(std::string_view text) {
  std::size_t length = std::min<std::size_t>(1, text.size());
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80)
    ++length;
  return text.substr(0, length);
}

// \sqrt2 as \sqrt{2}, \sqrt[3]8 as \sqrt[3]{8}.
std::optional<std::string> with_root_braces(std::string_view text) {
  constexpr std::string_view root = "\\sqrt";
  std::string out;
  for (auto at = text.find(root); at != text.npos; at = text.find(root)) {
    out.append(text.substr(0, at + root.size()));
    text.remove_prefix(at + root.size());
    if (const auto close = text.find(']'); text.starts_with('[') && close != text.npos) {
      out.append(text.substr(0, close + 1));
      text.remove_prefix(close + 1);
    }
    if (text.empty()) return std::nullopt;
    if (text.starts_with('{')) continue;
    const auto radicand = first_character(text);
    out.append("{").append(radicand).append("}");
    text.remove_prefix(radicand.size());
  }
  return out.append(text);
}

// \frac12 and \frac1{2} as \frac{1}{2}; the text as it is if an argument is missing.
std::optional<std::string> with_fraction_braces(std::string_view text) {
  constexpr std::string_view frac = "\\frac";
  const std::string whole(text);
  std::string out;
  for (auto at = text.find(frac); at != text.npos; at = text.find(frac)) {
    out.append(text.substr(0, at + frac.size()));
    text.remove_prefix(at + frac.size());
    const auto part = text.substr(0, text.find(frac));
    if (part.empty()) return std::nullopt;
    if (part.starts_with('{')) continue;
    const auto above = first_character(part), below = first_character(part.substr(above.size()));
    if (below.empty()) return whole;
    out.append("{").append(above).append("}");
    text.remove_prefix(above.size());
    if (below == "{") continue;
    out.append("{").append(below).append("}");
    text.remove_prefix(below.size());
  }
  return out.append(text);
}

// Digits as Python writes an integer.
bool is_plain_integer(std::string_view text) {
  if (text.starts_with('-') && text != "-0") text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit) &&
         (text.size() == 1 || text.front() != '0');
}

// 1/2 as \frac{1}{2}.
std::string with_fraction(std::string text) {
  const auto at = text.find('/');
  if (at == text.npos || text.find('/', at + 1) != text.npos) return text;
  const auto above = std::string_view(text).substr(0, at),
             below = std::string_view(text).substr(at + 1);
  if (!is_plain_integer(above) || !is_plain_integer(below)) return text;
  return std::string("\\frac{").append(above).append("}{").append(below).append("}");
}

// Units follow "\text{ ", which may stand once.
std::optional<std::string> without_units(const std::string& text) {
  constexpr std::string_view unit = "\\text{ ";
  const auto at = text.find(unit);
  if (at == text.npos) return text;
  if (text.find(unit, at + unit.size()) != text.npos) return std::nullopt;
  return text.substr(0, at);
}

// "x = 5" as 5: at most two characters before the only equals sign.
std::string right_side(const std::string& text) {
  const auto at = text.find('=');
  if (at == text.npos || text.find('=', at + 1) != text.npos) return text;
  const std::string_view left = std::string_view(text).substr(0, at);
  const auto first = first_character(left);
  const auto second = first_character(left.substr(first.size()));
  return first.size() + second.size() == left.size() ? text.substr(at + 1) : text;
}

}  // namespace

std::optional<std::string> gsm8k_answer(std::string_view text) {
  constexpr std::string_view mark = "#### ";
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark)) {
    text.remove_prefix(at + mark.size());
    const bool minus = text.starts_with('-');
    const auto rest = text.substr(minus ? 1 : 0);
    const auto digits = rest.substr(0, rest.find_first_not_of("0123456789.,"));
    if (!digits.empty()) return replaced(text.substr(0, digits.size() + (minus ? 1 : 0)), ",", "");
  }
  return std::nullopt;
}

std::optional<std::string_view> math_boxed(std::string_view text) {
  constexpr std::string_view bare = "\\boxed ", box = "\\boxed";
  if (const auto at = text.rfind(bare); at != text.npos) {
    const auto rest = text.substr(at + bare.size());
    return rest.substr(0, rest.find('$'));
  }
  const auto at = text.rfind(box);
  if (at == text.npos || !text.substr(at + box.size()).starts_with('{')) return std::nullopt;
  const auto rest = text.substr(at + box.size());
  std::size_t depth = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '{') ++depth;
    if (rest[i] == '}' && --depth == 0) return rest.substr(1, i - 1);
  }
  return std::nullopt;
}

std::optional<std::string> math_normal_form(std::string_view answer) {
  std::string text(answer);
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"\n", ""},
                                 {"\\!", ""},
                                 {"\\\\", "\\"},
                                 {"tfrac", "frac"},
                                 {"dfrac", "frac"},
                                 {"\\left", ""},
                                 {"\\right", ""},
                                 {"^{\\circ}", ""},
                                 {"^\\circ", ""},
                                 {"\\$", ""}})
    text = replaced(text, from, to);
  auto without = without_units(text);
  if (!without) return std::nullopt;
  text = replaced(replaced(replaced(*without, "\\%", ""), " .", " 0."), "{.", "{0.");
  if (text.empty()) return text;
  if (text.front() == '.') text.insert(0, 1, '0');
  const auto roots = with_root_braces(right_side(text));
  if (!roots) return std::nullopt;
  auto fractions = with_fraction_braces(replaced(*roots, " ", ""));
  if (!fractions) return std::nullopt;
  return *fractions == "0.5" ? "\\frac{1}{2}" : with_fraction(std::move(*fractions));
}

bool math_equivalent(std::string_view a, std::string_view b) {
  const auto left = math_normal_form(a), right = math_normal_form(b);
  return left && right ? *left == *right : a == b;
}

}  // namespace troupe::actors::rules
