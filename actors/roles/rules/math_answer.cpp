#include "actors/roles/rules/math_answer.h"

#include <algorithm>
#include <cmath>

#include "actors/roles/rules/math_number.h"
#include "actors/roles/rules/math_scan.h"
#include "actors/roles/rules/published_math.h"

namespace troupe::actors::rules {
namespace {

// Longer answers are compared only as text.
constexpr std::size_t max_answer_bytes = 4096;

bool near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

bool same_number(const Number& a, const Number& b, double tolerance) {
  if (!a.integer.empty() && !b.integer.empty() && a.percent == b.percent)
    return a.integer == b.integer;
  if (near(a.value, b.value, tolerance)) return true;
  return a.percent != b.percent &&
         near(a.percent ? a.value / 100 : a.value, b.percent ? b.value / 100 : b.value, tolerance);
}

// Returns the position of the last `word` followed by "{", or npos.
std::size_t last_command(std::string_view text, std::string_view word) {
  auto at = text.rfind(word);
  while (at != text.npos && !text.substr(at + word.size()).starts_with('{'))
    at = at == 0 ? text.npos : text.rfind(word, at - 1);
  return at;
}

// Returns what follows the last "\\boxed " that is no word, as TeX also reads it: "\\boxed 5".
std::optional<std::string_view> last_bare_box(std::string_view text) {
  constexpr std::string_view word = "\\boxed ";
  for (auto at = text.rfind(word); at != text.npos;
       at = at == 0 ? text.npos : text.rfind(word, at - 1)) {
    auto rest = text.substr(at + word.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    // The first character decides, so that the time stays linear.
    if (rest.empty() || is_letter(rest.front()) ||
        std::string_view("{$\n").find(rest.front()) != std::string_view::npos)
      continue;
    return trimmed(rest.substr(0, rest.find_first_of("$\n")));
  }
  return std::nullopt;
}

// Whether two normalized answers have MATH's form. That form takes \\leftarrow for \\left and
// "arrow".
bool same_form(const std::string& a, const std::string& b) {
  const auto points = [](const std::string& text) {
    return text.find("\\left") != text.npos || text.find("\\right") != text.npos;
  };
  return !points(a) && !points(b) && math_equivalent(a, b);
}

}  // namespace

std::optional<std::string_view> after_hashes(std::string_view text) {
  const auto at = text.rfind("####");
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + 4);
  return trimmed(text.substr(0, text.find('\n')));
}

std::optional<std::string_view> last_number(std::string_view text) {
  const auto last = text.find_last_of("0123456789");
  if (last == std::string_view::npos) return std::nullopt;
  auto begin = last;
  while (begin > 0) {
    const char c = text[begin - 1];
    const bool separates = (c == ',' || c == '.') && begin > 1 && is_digit(text[begin - 2]);
    if (!is_digit(c) && !separates && !(c == '.' && is_digit(text[begin]))) break;
    --begin;
  }
  if (begin > 0 && text[begin - 1] == '-' && (begin == 1 || !is_word(text[begin - 2]))) --begin;
  return text.substr(begin, last + 1 - begin);
}

std::optional<std::string_view> last_boxed(std::string_view text) {
  const auto boxed = last_command(text, "\\boxed"), fbox = last_command(text, "\\fbox");
  if (boxed == std::string_view::npos && fbox == std::string_view::npos) return last_bare_box(text);
  const auto at = boxed == std::string_view::npos  ? fbox
                  : fbox == std::string_view::npos ? boxed
                                                   : std::max(boxed, fbox);
  return braced(text.substr(text.find('{', at)));
}

bool same_answer(std::string_view a, std::string_view b, double tolerance) {
  a = trimmed(a);
  b = trimmed(b);
  if (a == b) return true;
  if (a.size() > max_answer_bytes || b.size() > max_answer_bytes) return false;
  const std::string left = normalize_math(a), right = normalize_math(b);
  if (left == right || same_form(left, right)) return true;
  const auto x = read_number(left), y = read_number(right);
  return x && y && same_number(*x, *y, tolerance);
}

}  // namespace troupe::actors::rules
