#include "engine/jinja/filters.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/container_methods.h"
#include "engine/jinja/operators.h"
#include "engine/jinja/repr.h"
#include "engine/jinja/sequences.h"

namespace troupe::engine::jinja {
namespace {

using Type = Value::Type;

Value default_filter(Runtime&, const Value& value, Arguments& arguments) {
  const Value *otherwise = arguments.find(0, "default_value"),
              *falsy = arguments.find(1, "boolean");
  const bool missing = value.is(Type::undefined) || (falsy && falsy->truth() && !value.truth());
  if (!missing) return value;
  return otherwise ? *otherwise : Value("");
}

Value length(Runtime&, const Value& value, Arguments&) {
  switch (value.type()) {
    case Type::undefined:
      if (strict_template()) raise(value.reason());
      return 0;
    case Type::string:
      return count_code_points(value.string());
    case Type::dict:
      return value.dict().items.size();
    case Type::list:
      if (value.list().kind != List::Kind::generator) return value.list().items.size();
      break;
    case Type::object:
      if (const auto* inside = value.object()->items_inside()) return inside->size();
      break;
    default:
      break;
  }
  raise(cat("object of type '", value.type_name(), "' has no len()"));
}

Value absolute(Runtime&, const Value& value, Arguments&) {
  require_defined(value);
  if (!value.is_number()) raise(cat("bad operand type for abs(): '", value.type_name(), "'"));
  if (value.is(Type::real)) return std::fabs(value.real());
  return value.integer() < 0 ? negate(value) : Value(value.integer());
}

// Converts digits of any script to ASCII, and removes white space at both ends and single
// underscores between digits; nullopt if underscores are elsewhere.
std::optional<std::string> plain_number(const std::string& given) {
  const std::string text = strip_text(given, nullptr, true, true);
  work(16 * text.size());
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const int digit = digit_value(code_point_at(text, at).value);
    const bool between = at > 0 && at + 1 < text.size() &&
                         std::isalnum(static_cast<unsigned char>(text[at - 1])) &&
                         std::isalnum(static_cast<unsigned char>(text[at + 1]));
    if (digit >= 0)
      out += static_cast<char>('0' + digit);
    else if (text[at] == '_' && !between)
      return std::nullopt;
    else if (text[at] != '_')
      out.append(text, at, utf8_length(text[at]));
  }
  return out;
}

std::optional<double> read_real(const std::string& given) {
  const auto text = plain_number(given);
  if (!text) return std::nullopt;
  double out = 0;
  const bool plus = text->starts_with('+') && !text->starts_with("+-");
  const auto read =
      std::from_chars(text->data() + (plus ? 1 : 0), text->data() + text->size(), out);
  if (read.ptr != text->data() + text->size() || text->empty()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) return std::strtod(text->c_str(), nullptr);
  return read.ec == std::errc() ? std::optional(out) : std::nullopt;
}

// int(text, base); nullopt for other text. Raises beyond 64 bits.
std::optional<std::int64_t> read_integer(const std::string& given, std::int64_t base) {
  const auto text = plain_number(given);
  if (!text || base == 1 || base < 0 || base > 36) return std::nullopt;
  std::size_t from = text->starts_with('+') || text->starts_with('-') ? 1 : 0;
  if (from < text->size() && !std::isalnum(static_cast<unsigned char>((*text)[from])))
    return std::nullopt;
  const bool negative = text->starts_with('-');
  const char mark = text->size() > from + 1 && (*text)[from] == '0'
                        ? static_cast<char>(std::tolower((*text)[from + 1]))
                        : '\0';
  const int named = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (named && (base == 0 || base == named)) from += 2;
  const int radix = base ? static_cast<int>(base) : named ? named : 10;
  if (base == 0 && !named && text->size() > from + 1 && (*text)[from] == '0' &&
      text->find_first_not_of("0", from) != std::string::npos)
    return std::nullopt;
  std::int64_t out = 0;
  const std::string digits = (negative ? "-" : "") + text->substr(from);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out, radix);
  if (read.ptr != digits.data() + digits.size() || text->size() == from) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) raise("an integer beyond 64 bits");
  return read.ec == std::errc() ? std::optional(out) : std::nullopt;
}

Value to_int(Runtime&, const Value& value, Arguments& arguments) {
  const Value *otherwise = arguments.find(0, "default"), *base = arguments.find(1, "base");
  const Value fallback = otherwise ? *otherwise : Value(0);
  if (value.is(Type::real) && std::isnan(value.real())) return fallback;
  if (value.is_number()) return whole_number(value);
  require_defined(value);
  if (!value.is(Type::string)) return fallback;
  if (const auto whole = read_integer(value.string(), base ? to_integer(*base, "base") : 10))
    return *whole;
  const auto real = read_real(value.string());
  return real && std::isfinite(*real) ? Value(whole_number(*real)) : fallback;
}

Value to_float(Runtime&, const Value& value, Arguments& arguments) {
  const Value* otherwise = arguments.find(0, "default");
  if (value.is_number()) return value.real();
  require_defined(value);
  if (value.is(Type::string))
    if (const auto real = read_real(value.string())) return *real;
  return otherwise ? *otherwise : Value(0.0);
}

// round(value, digits) of Python: the decimal that is nearest to the exact value, half to even.
double rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  const int exponent = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::fabs(value))));
  if (digits < -exponent - 1) return std::copysign(0.0, value);
  char buffer[800];
  if (digits >= 0) {
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), value);
    return std::strtod(buffer, nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Value round_filter(Runtime&, const Value& value, Arguments& arguments) {
  const Value *digits = arguments.find(0, "precision"), *method = arguments.find(1, "method");
  const std::string how = method ? to_text(*method, "method") : "common";
  if (how != "common" && how != "ceil" && how != "floor")
    raise("method must be common, ceil or floor");
  require_defined(value);
  if (!value.is_number()) raise(cat("type ", value.type_name(), " cannot be rounded"));
  const auto precision =
      digits ? std::clamp<std::int64_t>(to_integer(*digits, "precision"), -330, 330) : 0;
  if (how == "common") {
    if (!value.is_integral()) return rounded(value.real(), precision);
    return precision >= 0 ? Value(value.integer())
                          : Value(whole_number(rounded(value.real(), precision)));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.real() * scale;
  if (!std::isfinite(scaled))
    raise(cat("cannot convert float ", real_to_string(scaled), " to integer"));
  return (how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale + 0.0;
}

Value to_json_filter(Runtime& runtime, const Value& value, Arguments& arguments) {
  JsonStyle style;
  const Value *ascii = arguments.find(0, "ensure_ascii"), *indent = arguments.find(1, "indent"),
              *separators = arguments.find(2, "separators"), *sort = arguments.find(3, "sort_keys");
  style.ascii = ascii && ascii->truth();
  style.sort_keys = sort && sort->truth();
  if (indent && indent->is(Type::string))
    style.indent = indent->string();
  else if (indent && !indent->is(Type::none))
    style.indent = std::string(
        static_cast<std::size_t>(std::clamp<std::int64_t>(to_integer(*indent, "indent"), 0, 100)),
        ' ');
  if (separators && !separators->is(Type::none)) {
    const auto items = runtime.items_of(*separators);
    if (items.size() != 2) raise("separators must be a pair");
    style.item_separator = to_text(items[0], "a separator");
    style.key_separator = to_text(items[1], "a separator");
  }
  runtime.account(value);
  std::string out = to_json(value, style);
  runtime.reserve(out.size());
  return out;
}

Value attribute(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value* name = arguments.find(0, "name");
  require_defined(value);
  if (value.is(Type::dict)) {  // attributes only, not items
    const auto method = dict_method(value, to_text(*name, "name"));
    return method ? *method
                  : Value::undefined(cat("'dict object' has no attribute ", to_repr(*name)));
  }
  return runtime.attribute(value, to_text(*name, "name"));
}

Value items(Runtime& runtime, const Value& value, Arguments& arguments) {
  return generator([&](std::vector<Value>& out) {
    if (value.is(Type::undefined)) return;
    if (!value.is(Type::dict)) raise("Can only get item pairs from a mapping.");
    out = runtime.items_of(runtime.call(*dict_method(value, "items"), arguments));
  });
}

}  // namespace

const FilterTable& value_filters() {
  static const FilterTable filters = {
      {"default", {default_filter, "default_value? boolean?"}},
      {"d", {default_filter, "default_value? boolean?"}},
      {"length", {length, ""}},
      {"count", {length, ""}},
      {"abs", {absolute, ""}},
      {"int", {to_int, "default? base?"}},
      {"float", {to_float, "default?"}},
      {"round", {round_filter, "precision? method?"}},
      {"tojson", {to_json_filter, "ensure_ascii? indent? separators? sort_keys?"}},
      {"attr", {attribute, "name"}},
      {"items", {items, ""}},
  };
  return filters;
}

}  // namespace troupe::engine::jinja
