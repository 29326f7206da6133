#include "engine/data/readers/exact_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

// Members whose values a chat template writes as JSON.
constexpr std::array<std::string_view, 6> rendered_members = {
    "tools", "tool_calls", "function_call", "function", "parameters", "arguments"};

// Fewer digits always fit.
constexpr std::size_t min_digits = 19;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Walks JSON text by its brackets, strings and numbers; the parser validates it later.
class IntegerScan {
 public:
  IntegerScan(std::string_view text, bool rendered) : text_(text), rendered_{rendered} {}

  /// The text with quotation marks around the integers.
  Result<std::string> quoted_integers() {
    while (at_ < text_.size()) RETURN_IF_ERROR(step());
    out_ += text_.substr(copied_);
    return std::move(out_);
  }

 private:
  Result<> step() {
    const char c = text_[at_];
    if (c == '"') return string();
    if (is_digit(c) || c == '-') return number();
    if (c == '{' || c == '[') {
      const bool named = std::ranges::find(rendered_members, key_) != rendered_members.end();
      rendered_.push_back(named || (!rendered_.empty() && rendered_.back()));
    }
    if ((c == '}' || c == ']') && !rendered_.empty()) rendered_.pop_back();
    ++at_;
    return {};
  }

  // A string is the key of what follows it, or a value.
  Result<> string() {
    const auto begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    const auto end = std::min(at_, text_.size());
    at_ = std::min(end + 1, text_.size());
    const auto next = text_.find_first_not_of(" \t\r\n", at_);
    if (next != text_.npos && text_[next] == ':') key_ = text_.substr(begin, end - begin);
    return {};
  }

  Result<> number() {
    const auto begin = at_;
    ++at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    const bool fraction =
        at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
    const auto digits = text_.substr(begin, at_ - begin);
    if (fraction) {
      while (at_ < text_.size() &&
             std::string_view("0123456789.eE+-").find(text_[at_]) != text_.npos)
        ++at_;
      return {};
    }
    std::int64_t value = 0;
    if (digits.size() < min_digits ||
        std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc())
      return {};
    if (!rendered_.empty() && rendered_.back())
      return fail(Errc::bad_input, cat(quote(key_, 40), ": the integer ", digits.substr(0, 40),
                                       " is beyond 63 bits; write it as text"));
    out_ += text_.substr(copied_, begin - copied_);
    out_ += cat('"', digits, '"');
    copied_ = at_;
    return {};
  }

  std::string_view text_, key_;
  std::size_t at_ = 0, copied_ = 0;
  std::vector<bool> rendered_;  ///< of the text and each open bracket: inside of such a member
  std::string out_;
};

// Whether the text has as many digits in a row as an integer beyond 63 bits has.
bool may_have_large_integers(std::string_view text) {
  for (std::size_t at = min_digits - 1; at < text.size(); at += min_digits) {
    if (!is_digit(text[at])) continue;
    std::size_t begin = at, end = at;
    while (begin > 0 && is_digit(text[begin - 1])) --begin;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end - begin >= min_digits) return true;
  }
  return false;
}

}  // namespace

Result<Json> parse_exact_json(std::string_view text, std::string_view where, JsonLimits limits,
                              bool rendered) {
  if (text.size() > limits.bytes || !may_have_large_integers(text))
    return parse_json(text, where, limits);
  auto exact = IntegerScan(text, rendered).quoted_integers();
  if (!exact) return fail(Errc::bad_input, cat(where, ": ", exact.error().what));
  limits.bytes += 2 * (exact->size() - text.size());
  return parse_json(*exact, where, limits);
}

}  // namespace troupe::engine::data
