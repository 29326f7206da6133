#include "engine/base/json.h"

#include <cmath>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe {

const char* Json::type_name() const {
  constexpr const char* names[] = {"null",   "boolean", "integer", "number",
                                   "string", "array",   "object"};
  return names[value_.index()];
}

bool Json::boolean() const {
  return check(is_bool(), "Json: not a boolean"), std::get<bool>(value_);
}
std::int64_t Json::integer() const {
  return check(is_integer(), "Json: not an integer"), std::get<std::int64_t>(value_);
}
double Json::number() const {
  check(is_number(), "Json: not a number");
  return is_integer() ? static_cast<double>(integer()) : std::get<double>(value_);
}
const std::string& Json::string() const {
  return check(is_string(), "Json: not a string"), std::get<std::string>(value_);
}
const Json::Array& Json::array() const {
  return check(is_array(), "Json: not an array"), std::get<Array>(value_);
}
const Json::Object& Json::object() const {
  return check(is_object(), "Json: not an object"), std::get<Object>(value_);
}
Json::Array& Json::array() {
  return check(is_array(), "Json: not an array"), std::get<Array>(value_);
}
Json::Object& Json::object() {
  return check(is_object(), "Json: not an object"), std::get<Object>(value_);
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : std::get<Object>(value_))
    if (name == key) return &value;
  return nullptr;
}

Json& Json::set(std::string key, Json value) {
  if (is_null()) value_ = Object{};
  for (auto& [name, old] : object()) {
    if (name != key) continue;
    old = std::move(value);
    return *this;
  }
  object().emplace_back(std::move(key), std::move(value));
  return *this;
}

namespace {

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          constexpr std::string_view digits = "0123456789abcdef";
          out += "\\u00", out += digits[static_cast<unsigned char>(c) >> 4], out += digits[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

// JSON has no NaN or infinity; a metric that is one must not make the line unreadable.
void write_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::string text = to_text(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  out += text;
}

// indent < 0: compact
void write(std::string& out, const Json& value, int indent, int level) {
  const auto newline = [&](int depth) {
    if (indent >= 0) out += '\n', out.append(static_cast<std::size_t>(indent * depth), ' ');
  };
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.boolean() ? "true" : "false";
  } else if (value.is_integer()) {
    out += std::to_string(value.integer());
  } else if (value.is_number()) {
    write_number(out, value.number());
  } else if (value.is_string()) {
    write_string(out, value.string());
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const auto& item : value.array()) {
      if (!std::exchange(first, false)) out += ',';
      newline(level + 1);
      write(out, item, indent, level + 1);
    }
    if (!first) newline(level);
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : value.object()) {
      if (!std::exchange(first, false)) out += ',';
      newline(level + 1);
      write_string(out, key);
      out += indent >= 0 ? ": " : ":";
      write(out, item, indent, level + 1);
    }
    if (!first) newline(level);
    out += '}';
  }
}

tl::unexpected<Error> wrong_type(const Json& object, std::string_view key, std::string_view where,
                                 std::string_view wanted) {
  const Json* member = object.find(key);
  if (!member)
    return fail(Errc::bad_input, cat(where, ": the key \"", key, "\" (", wanted, ") is missing"));
  return fail(Errc::bad_input, cat(where, ": \"", key, "\" must be ", wanted, ", found ",
                                   quote(member->dump(), 40)));
}

}  // namespace

std::string Json::dump() const {
  return dump(-1);
}
std::string Json::dump(int indent) const {
  std::string out;
  write(out, *this, indent, 0);
  return out;
}

Result<std::int64_t> get_integer(const Json& object, std::string_view key, std::string_view where) {
  const Json* member = object.find(key);
  if (!member || !member->is_integer()) return wrong_type(object, key, where, "an integer");
  return member->integer();
}
Result<double> get_number(const Json& object, std::string_view key, std::string_view where) {
  const Json* member = object.find(key);
  if (!member || !member->is_number()) return wrong_type(object, key, where, "a number");
  return member->number();
}
Result<bool> get_bool(const Json& object, std::string_view key, std::string_view where) {
  const Json* member = object.find(key);
  if (!member || !member->is_bool()) return wrong_type(object, key, where, "true or false");
  return member->boolean();
}
Result<std::string> get_string(const Json& object, std::string_view key, std::string_view where) {
  const Json* member = object.find(key);
  if (!member || !member->is_string()) return wrong_type(object, key, where, "a string");
  return member->string();
}

}  // namespace troupe
