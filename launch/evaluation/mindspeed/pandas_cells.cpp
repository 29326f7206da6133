#include "launch/evaluation/mindspeed/pandas_cells.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "engine/base/text/text.h"
#include "engine/jinja/case.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

// STR_NA_VALUES of pandas/_libs/parsers.pyx 2.2.
constexpr std::array<std::string_view, 19> missing_values = {
    "",     "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A",  "NA",       "NULL", "NaN",     "None",     "n/a",  "nan",  "null"};

bool is_missing(const Json& cell) {
  return cell.is_null() || std::ranges::find(missing_values, cell.string()) != missing_values.end();
}

std::string_view without_spaces(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

enum class Parsed { number, overflow, invalid };

/// str_to_int64() and str_to_uint64() of pandas' tokenizer.c: digits that do not fit are an
/// overflow whatever follows them.
template <class Whole>
Parsed parse_whole(std::string_view text, Whole& out) {
  text = without_spaces(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (read.ec == std::errc::result_out_of_range) return Parsed::overflow;
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? Parsed::number
                                                                         : Parsed::invalid;
}

/// A text that is read from its front.
struct NumberReader {
  std::string_view left;
  bool take(char c) {
    const bool found = left.starts_with(c);
    if (found) left.remove_prefix(1);
    return found;
  }
  bool take_sign() { return take('-') || (take('+') && false); }
  std::optional<int> take_digit() {
    if (left.empty() || left.front() < '0' || left.front() > '9') return std::nullopt;
    const int out = left.front() - '0';
    left.remove_prefix(1);
    return out;
  }
};

double power_of_ten(int n) {
  const std::string text = cat("1e", n);
  double out = 1;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// The digits of a number as pandas adds them up: 17 count.
struct Digits {
  double number = 0;
  int count = 0, exponent = 0;
  bool add(int digit) {
    if (count == 17) return false;
    number = number * 10 + digit;
    ++count;
    return true;
  }
  double scaled() const {
    if (exponent > 0) return number * power_of_ten(exponent);
    if (exponent < -308) return number / power_of_ten(-308 - exponent) / power_of_ten(308);
    return number / power_of_ten(-exponent);
  }
};

/// precise_xstrtod() of pandas' tokenizer.c, whose results are not always the nearest ones.
std::optional<double> real(const std::string& text) {
  const std::string name = engine::jinja::lower(text);
  if (const std::string bare = name.substr(name.find_first_not_of("+-") == 1 ? 1 : 0);
      bare == "inf" || bare == "infinity")
    return name.starts_with('-') ? -std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::infinity();
  NumberReader in{without_spaces(text)};
  const bool negative = in.take_sign();
  Digits digits;
  while (const auto digit = in.take_digit())
    if (!digits.add(*digit)) ++digits.exponent;
  if (in.take('.'))
    while (const auto digit = in.take_digit())
      if (digits.add(*digit)) --digits.exponent;
  if (digits.count == 0) return std::nullopt;
  if (in.take('e') || in.take('E')) {
    const bool below = in.take_sign();
    if (in.left.empty()) return std::nullopt;
    int exponent = 0;
    while (const auto digit = in.take_digit()) exponent = std::min(exponent * 10 + *digit, 10000);
    digits.exponent += below ? -exponent : exponent;
  }
  if (!in.left.empty() || digits.exponent > 308) return std::nullopt;
  if (digits.exponent < -616) return 0;  // beyond the powers of ten of a double
  const double out = digits.scaled();
  return std::isinf(out) ? std::nullopt : std::optional(negative ? -out : out);
}

std::optional<bool> truth(const std::string& text) {
  const std::string name = engine::jinja::lower(text);
  if (name == "true") return true;
  if (name == "false") return false;
  return std::nullopt;
}

std::string real_text(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return python_text(Json(value));
}

/// What read_csv() makes of a column; `raw`: texts whose missing values stay as they are written.
enum class Kind { whole, unsigned_whole, real, truth, text, raw };

bool all_are(const std::vector<Json>& cells, auto test) {
  return std::ranges::all_of(
      cells, [&](const Json& cell) { return is_missing(cell) || test(cell.string()); });
}

/// For a column with a whole number beyond int64: _try_uint64() of pandas' parsers.pyx. nullopt:
/// other types are tried.
std::optional<Kind> unsigned_kind(const std::vector<Json>& cells) {
  bool missing = false, negative = false, large = false;
  for (const Json& cell : cells) {
    if (is_missing(cell)) {
      missing = true;
    } else if (without_spaces(cell.string()).starts_with('-')) {
      negative = true;
    } else {
      std::uint64_t value = 0;
      const Parsed parsed = parse_whole(cell.string(), value);
      if (parsed == Parsed::overflow) return Kind::text;
      if (parsed == Parsed::invalid) return std::nullopt;
      large = large || value > std::numeric_limits<std::int64_t>::max();
    }
  }
  if (large && (negative || missing)) return Kind::raw;
  return negative ? Kind::text : Kind::unsigned_whole;
}

/// The first cell that is no int64 decides how the column is read.
Kind kind_of(const std::vector<Json>& cells) {
  Parsed first = Parsed::number;
  all_are(cells, [&](const std::string& text) {
    std::int64_t ignored = 0;
    first = parse_whole(text, ignored);
    return first == Parsed::number;
  });
  if (first == Parsed::number) return Kind::whole;
  if (first == Parsed::overflow)
    if (const auto kind = unsigned_kind(cells)) return *kind;
  if (all_are(cells, [](const std::string& text) { return real(text).has_value(); }))
    return Kind::real;
  if (all_are(cells, [](const std::string& text) { return truth(text).has_value(); }))
    return Kind::truth;
  return Kind::text;
}

template <class Whole>
Whole whole_value(const std::string& text) {
  Whole out{};
  parse_whole(text, out);
  return out;
}

std::string printed(const std::string& text, Kind kind, bool with_missing) {
  switch (kind) {
    case Kind::whole: {
      const auto value = whole_value<std::int64_t>(text);
      return with_missing ? real_text(static_cast<double>(value)) : std::to_string(value);
    }
    case Kind::unsigned_whole:
      return std::to_string(whole_value<std::uint64_t>(text));
    case Kind::real:
      return real_text(*real(text));
    case Kind::truth:
      return *truth(text) ? "True" : "False";
    default:
      return text;
  }
}

}  // namespace

std::vector<std::string> pandas_column(const std::vector<Json>& cells) {
  const Kind kind = kind_of(cells);
  const bool with_missing = std::ranges::any_of(cells, is_missing);
  std::vector<std::string> out;
  for (const Json& cell : cells) {
    const std::string text = cell.is_null() ? "" : cell.string();
    out.push_back(is_missing(cell) && kind != Kind::raw ? "nan"
                                                        : printed(text, kind, with_missing));
  }
  return out;
}

}  // namespace troupe::launch::evaluation::mindspeed
