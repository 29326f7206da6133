// Filters of any value: numbers, defaults, JSON.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "engine/base/text.h"
#include "engine/tokenizer/jinja/case.h"
#include "engine/tokenizer/jinja/machine.h"
#include "engine/tokenizer/utf8.h"

namespace troupe::engine::tokenizer::jinja {
namespace {

using Type = Value::Type;

Value default_filter(Machine&, const Value& value, Arguments& arguments) {
  const Value *otherwise = arguments.find(0, "default_value"), *falsy = arguments.find(1, "boolean");
  const bool missing = value.is(Type::undefined) || (falsy && falsy->truth() && !value.truth());
  if (!missing) return value;
  return otherwise ? *otherwise : Value("");
}

Value length(Machine&, const Value& value, Arguments&) {
  switch (value.type()) {
    case Type::undefined:
      return 0;
    case Type::string:
      return count_code_points(value.string());
    case Type::dict:
      return value.dict().items.size();
    case Type::list:
      if (value.list().kind != List::Kind::generator) return value.list().items.size();
      [[fallthrough]];
    default:
      raise(cat("object of type '", value.type_name(), "' has no len()"));
  }
}

Value absolute(Machine&, const Value& value, Arguments&) {
  require_defined(value);
  if (!value.is_number()) raise(cat("bad operand type for abs(): '", value.type_name(), "'"));
  if (value.is(Type::real)) return std::fabs(value.real());
  return value.integer() < 0 ? negate(value) : Value(value.integer());
}

std::optional<double> read_real(const std::string& given) {
  const std::string text = strip_text(given, nullptr, true, true);
  double out = 0;
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto read = std::from_chars(begin, text.data() + text.size(), out);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return out;
}

Value to_int(Machine&, const Value& value, Arguments& arguments) {
  const Value* otherwise = arguments.find(0, "default");
  const Value* base = arguments.find(1, "base");
  const Value fallback = otherwise ? *otherwise : Value(0);
  if (value.is_integral()) return value.integer();
  if (value.is(Type::real)) return std::fabs(value.real()) < 9e18 ? Value(static_cast<std::int64_t>(value.real())) : fallback;
  require_defined(value);
  if (!value.is(Type::string)) return fallback;
  const std::string text = strip_text(value.string(), nullptr, true, true);
  std::int64_t out = 0;
  const int radix = base ? static_cast<int>(std::clamp<std::int64_t>(to_integer(*base, "base"), 2, 36)) : 10;
  std::size_t from = text.starts_with('+') ? 1 : 0;
  if (radix == 16 && (text.starts_with("0x") || text.starts_with("0X"))) from = 2;
  const auto read = std::from_chars(text.data() + from, text.data() + text.size(), out, radix);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && text.size() > from) return out;
  const auto real = read_real(text);
  return real && std::fabs(*real) < 9e18 ? Value(static_cast<std::int64_t>(*real)) : fallback;
}

Value to_float(Machine&, const Value& value, Arguments& arguments) {
  const Value* otherwise = arguments.find(0, "default");
  if (value.is_number()) return value.real();
  require_defined(value);
  if (value.is(Type::string))
    if (const auto real = read_real(value.string())) return *real;
  return otherwise ? *otherwise : Value(0.0);
}

// Half to even, as Python's round(); "ceil" and "floor" by name.
Value round_filter(Machine&, const Value& value, Arguments& arguments) {
  const Value *digits = arguments.find(0, "precision"), *method = arguments.find(1, "method");
  require_defined(value);
  if (!value.is_number()) raise(cat("type ", value.type_name(), " cannot be rounded"));
  const auto precision = digits ? std::clamp<std::int64_t>(to_integer(*digits, "precision"), -300, 300) : 0;
  const std::string how = method ? to_text(*method, "method") : "common";
  if (how != "common" && how != "ceil" && how != "floor") raise("method must be common, ceil or floor");
  if (how == "common" && value.is_integral() && precision >= 0) return value.integer();
  const double number = value.real();
  if (how == "common" && precision >= 0 && precision < 20) {
    char buffer[400];
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), number);
    return std::strtod(buffer, nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * scale;
  return (how == "ceil" ? std::ceil(scaled) : how == "floor" ? std::floor(scaled) : std::nearbyint(scaled)) / scale;
}

Value to_json_filter(Machine& machine, const Value& value, Arguments& arguments) {
  JsonStyle style;
  const Value *ascii = arguments.find(0, "ensure_ascii"), *indent = arguments.find(1, "indent"),
              *separators = arguments.find(2, "separators"), *sort = arguments.find(3, "sort_keys");
  style.ascii = ascii && ascii->truth();
  style.sort_keys = sort && sort->truth();
  if (indent && indent->is(Type::string))
    style.indent = indent->string();
  else if (indent && indent->is_integral())
    style.indent = std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(indent->integer(), 0, 100)), ' ');
  if (separators && !separators->is(Type::none)) {
    const auto items = machine.items_of(*separators);
    if (items.size() != 2) raise("separators must be a pair");
    style.item_separator = to_text(items[0], "a separator");
    style.key_separator = to_text(items[1], "a separator");
  }
  machine.weigh(value);
  std::string out = to_json(value, style);
  machine.reserve(out.size());
  return out;
}

Value attribute(Machine& machine, const Value& value, Arguments& arguments) {
  const Value* name = arguments.find(0, "name");
  if (!name) raise("attr needs a name");
  require_defined(value);
  if (value.is(Type::dict)) {  // attributes only, not items
    const auto method = dict_method(value, to_text(*name, "name"));
    return method ? *method : Value::undefined(cat("'dict object' has no attribute ", to_repr(*name)));
  }
  return machine.attribute(value, to_text(*name, "name"));
}

Value items(Machine& machine, const Value& value, Arguments& arguments) {
  if (value.is(Type::undefined)) return List{};
  if (!value.is(Type::dict)) raise("Can only get item pairs from a mapping.");
  return machine.call(*dict_method(value, "items"), arguments);
}

const std::map<std::string_view, FilterBody>& table() {
  static const std::map<std::string_view, FilterBody> filters = {
      {"default", default_filter}, {"d", default_filter}, {"length", length},  {"count", length},
      {"abs", absolute},           {"int", to_int},       {"float", to_float}, {"round", round_filter},
      {"tojson", to_json_filter},  {"attr", attribute},   {"items", items},
  };
  return filters;
}

}  // namespace

FilterBody find_value_filter(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace troupe::engine::tokenizer::jinja
