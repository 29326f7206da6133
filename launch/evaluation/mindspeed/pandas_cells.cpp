#include "launch/evaluation/mindspeed/pandas_cells.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

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

template <class Number>
std::optional<Number> whole_text(std::string_view text) {
  text = without_spaces(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number out{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return std::nullopt;
  return out;
}

std::optional<double> real(std::string_view text) {
  const auto out = whole_text<double>(text);
  // from_chars() also reads "nan(...)", which pandas does not.
  return out && std::isnan(*out) ? std::nullopt : out;
}

std::optional<bool> truth(std::string_view text) {
  if (text == "True" || text == "TRUE" || text == "true") return true;
  if (text == "False" || text == "FALSE" || text == "false") return false;
  return std::nullopt;
}

std::string real_text(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return python_text(Json(value));
}

}  // namespace

std::vector<std::string> pandas_column(const std::vector<Json>& cells) {
  bool whole = true, numbers = true, truths = true;
  for (const Json& cell : cells) {
    if (is_missing(cell)) {
      whole = false;
      continue;
    }
    whole = whole && whole_text<std::int64_t>(cell.string());
    numbers = numbers && real(cell.string());
    truths = truths && truth(cell.string());
  }
  std::vector<std::string> out;
  for (const Json& cell : cells) {
    if (is_missing(cell))
      out.emplace_back("nan");
    else if (whole)
      out.push_back(std::to_string(*whole_text<std::int64_t>(cell.string())));
    else if (numbers)
      out.push_back(real_text(*real(cell.string())));
    else if (truths)
      out.emplace_back(*truth(cell.string()) ? "True" : "False");
    else
      out.push_back(cell.string());
  }
  return out;
}

}  // namespace troupe::launch::evaluation::mindspeed
