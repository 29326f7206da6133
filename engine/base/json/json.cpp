#include "engine/base/json/json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/base/errors/check.h"
#include "engine/base/files/file.h"
#include "engine/base/json/valid_json.h"
#include "engine/base/text/text.h"

namespace troupe {

const char* Json::type_name() const {
  constexpr const char* names[] = {"null",   "boolean", "integer", "number",
                                   "string", "array",   "object"};
  return names[value_.index()];
}

bool Json::boolean() const {
  check(is_bool(), "Json: not a boolean");
  return std::get<bool>(value_);
}
std::int64_t Json::integer() const {
  check(is_integer(), "Json: not an integer");
  return std::get<std::int64_t>(value_);
}
double Json::number() const {
  check(is_number(), "Json: not a number");
  return is_integer() ? static_cast<double>(integer()) : std::get<double>(value_);
}
const std::string& Json::string() const {
  check(is_string(), "Json: not a string");
  return std::get<std::string>(value_);
}
const Json::Array& Json::array() const {
  check(is_array(), "Json: not an array");
  return std::get<Array>(value_);
}
const Json::Object& Json::object() const {
  check(is_object(), "Json: not an object");
  return std::get<Object>(value_);
}
Json::Array& Json::array() {
  check(is_array(), "Json: not an array");
  return std::get<Array>(value_);
}
Json::Object& Json::object() {
  check(is_object(), "Json: not an object");
  return std::get<Object>(value_);
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : std::get<Object>(value_))
    if (name == key) return &value;
  return nullptr;
}

Json::Value Json::copy_of(const Value& value) {
  return std::visit([]<class T>(const T& held) { return Value(std::in_place_type<T>, held); },
                    value);
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

void write_json_string(std::string& out, std::string_view text) {
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
          out += "\\u00";
          out += digits[static_cast<unsigned char>(c) >> 4];
          out += digits[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

// JSON has no NaN or infinity: such metrics are written as null.
void write_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::string text = to_text(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  out += text;
}

void write_json(std::string& out, const Json& value, int indent, int level);

void start_line(std::string& out, int indent, int level) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent * level), ' ');
}

void write_json_array(std::string& out, const Json::Array& items, int indent, int level) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) out += ',';
    start_line(out, indent, level + 1);
    write_json(out, item, indent, level + 1);
  }
  if (!first) start_line(out, indent, level);
  out += ']';
}

void write_json_object(std::string& out, const Json::Object& members, int indent, int level) {
  out += '{';
  bool first = true;
  for (const auto& [key, item] : members) {
    if (!std::exchange(first, false)) out += ',';
    start_line(out, indent, level + 1);
    write_json_string(out, key);
    out += indent >= 0 ? ": " : ":";
    write_json(out, item, indent, level + 1);
  }
  if (!first) start_line(out, indent, level);
  out += '}';
}

// A negative indent writes compact JSON.
void write_json(std::string& out, const Json& value, int indent, int level) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.boolean() ? "true" : "false";
  } else if (value.is_integer()) {
    out += std::to_string(value.integer());
  } else if (value.is_number()) {
    write_json_number(out, value.number());
  } else if (value.is_string()) {
    write_json_string(out, value.string());
  } else if (value.is_array()) {
    write_json_array(out, value.array(), indent, level);
  } else {
    write_json_object(out, value.object(), indent, level);
  }
}

tl::unexpected<Error> wrong_member(const Json& object, std::string_view key, std::string_view where,
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
  write_json(out, *this, indent, 0);
  return out;
}

Result<std::int64_t> get_integer(const Json& object, std::string_view key, std::string_view where) {
  const Json* member = object.find(key);
  if (!member || !member->is_integer()) return wrong_member(object, key, where, "an integer");
  return member->integer();
}
Result<double> get_number(const Json& object, std::string_view key, std::string_view where) {
  const Json* member = object.find(key);
  if (!member || !member->is_number()) return wrong_member(object, key, where, "a number");
  return member->number();
}
Result<bool> get_bool(const Json& object, std::string_view key, std::string_view where) {
  const Json* member = object.find(key);
  if (!member || !member->is_bool()) return wrong_member(object, key, where, "true or false");
  return member->boolean();
}
Result<std::string> get_string(const Json& object, std::string_view key, std::string_view where) {
  const Json* member = object.find(key);
  if (!member || !member->is_string()) return wrong_member(object, key, where, "a string");
  return member->string();
}

namespace {

// These limits keep the text, its longest string and the values below 200 MB together. A value
// takes at least 40 bytes and may be written with two characters; the largest published
// tokenizer.json has 2.5 million. A growing list exists twice during reallocation.
constexpr std::size_t max_json_bytes = std::size_t{64} << 20;
constexpr std::size_t max_values_in_container = std::size_t{1} << 20;
std::size_t max_json_values(const JsonLimits& limits) {
  return std::clamp<std::size_t>(limits.bytes / 8, 4096, 3'000'000);
}

}  // namespace

std::optional<std::size_t> repeated_key(const Json::Object& members) {
  std::vector<std::uint32_t> order(members.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto key = [&](std::uint32_t i) -> const std::string& { return members[i].first; };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    const int found = key(a).compare(key(b));
    return found != 0 ? found < 0 : a < b;
  });
  const auto twice = std::adjacent_find(order.begin(), order.end(),
                                        [&](auto a, auto b) { return key(a) == key(b); });
  if (twice == order.end()) return std::nullopt;
  return *std::next(twice);
}

namespace {

// An iterator that counts the characters read: the library reports its position for malformed text
// only.
class CountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  CountingIterator(const char* at, std::size_t* read) : at_(at), read_(read) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*read_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* read_;
};

// The library's messages contain the last token read, of any length: only the beginning and the end
// are kept.
std::string shortened(std::string problem) {
  constexpr std::size_t first = 160, last = 120;
  const auto character_at = [&](std::size_t at) {
    while (at > 0 && (static_cast<unsigned char>(problem[at]) & 0xC0) == 0x80) --at;
    return at;
  };
  if (problem.size() <= first + last + 3) return problem;
  const std::size_t from = character_at(first), to = character_at(problem.size() - last);
  return problem.replace(from, to - from, "...");
}

// Builds the value during parsing, so that excessive depth and size are rejected before memory is
// allocated.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBuilder(const JsonBounds& bounds) : bounds_(bounds) {}
  Json root;
  std::string problem;
  std::size_t read = 0;      ///< bytes consumed by the library
  std::size_t position = 0;  ///< end of the offending text, in bytes

  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(std::int64_t value) override { return number(Json(value)); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      return number(Json(static_cast<double>(value)));
    return number(Json(value));
  }
  bool number_float(double value, const std::string& text) override {
    if (!std::isfinite(value)) return refuse(cat("the number ", text, " does not fit a double"));
    return number(Json(value));
  }
  bool string(std::string& value) override { return put(Json(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) override { return refuse("binary data"); }
  bool key(std::string& name) override {
    levels_.back().key = std::move(name);
    levels_.back().keys_end.push_back(static_cast<std::uint32_t>(read));
    return count();
  }
  bool start_object(std::size_t) override { return open(Json(Json::Object{})); }
  bool start_array(std::size_t) override { return open(Json(Json::Array{})); }
  bool end_object() override {
    const auto& members = levels_.back().value.object();
    const auto twice = repeated_key(members);
    if (!twice) return close();
    refuse(cat("the key ", quote(members[*twice].first), " occurs twice in one object"));
    position = levels_.back().keys_end[*twice];
    return false;
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position = at;
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while ...",
    // "[...] number overflow parsing '1e400'"
    problem = error.what();
    const auto message = problem.find("syntax error"), tag = problem.find("] ");
    problem.erase(0, message != std::string::npos ? message
                     : tag != std::string::npos   ? tag + 2
                                                  : 0);
    problem = shortened(std::move(problem));
    return false;
  }

 private:
  struct Level {
    Json value;
    std::string key;
    std::vector<std::uint32_t> keys_end;  ///< of an object: where each key ends in the text
    std::size_t size = 0;
  };

  bool refuse(std::string why) {
    problem = std::move(why);
    position = read;
    return false;
  }
  bool open(Json value) {
    if (levels_.size() >= bounds_.depth)
      return refuse(cat("nested deeper than ", bounds_.depth, " levels"));
    levels_.push_back({std::move(value), {}, {}, 0});
    return true;
  }
  bool count() {
    if (++values_ > bounds_.values)
      return refuse(cat("more than ", bounds_.values, " values (the limit)"));
    return true;
  }
  // The library has also consumed the character after a number.
  bool number(Json value) {
    if (put(std::move(value))) return true;
    --position;
    return false;
  }
  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return put(std::move(value));
  }
  bool put(Json value) {
    if (!count()) return false;
    if (!levels_.empty() && levels_.back().size++ >= bounds_.in_container)
      return refuse(
          cat("more than ", bounds_.in_container, " values in one list or object (the limit)"));
    if (levels_.empty()) {
      root = std::move(value);
    } else if (levels_.back().value.is_array()) {
      levels_.back().value.array().push_back(std::move(value));
    } else {
      levels_.back().value.object().emplace_back(std::move(levels_.back().key), std::move(value));
    }
    return true;
  }

  JsonBounds bounds_;
  std::size_t values_ = 0;
  std::vector<Level> levels_;
};

std::string line_and_column(std::string_view text, std::size_t offset) {
  const auto head = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(head.begin(), head.end(), '\n') + 1;
  const auto column =
      head.size() - (head.rfind('\n') == std::string_view::npos ? 0 : head.rfind('\n') + 1);
  return cat("line ", line, ", column ", column);
}

}  // namespace

Result<Json> parse_json_with_library(std::string_view text, std::string_view where,
                                     const JsonBounds& bounds) {
  JsonBuilder builder(bounds);
  const CountingIterator begin(text.data(), &builder.read),
      end(text.data() + text.size(), &builder.read);
  if (nlohmann::json::sax_parse(begin, end, &builder)) return std::move(builder.root);
  return fail(Errc::bad_input, cat(where, ": not valid JSON at ",
                                   line_and_column(text, builder.position), ": ", builder.problem));
}

Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
  limits.bytes = std::min(limits.bytes, max_json_bytes);
  if (text.size() > limits.bytes)
    return fail(Errc::bad_input, cat(where, ": ", text.size(), " bytes of JSON, at most ",
                                     limits.bytes, " are read"));
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t bad = 0;
  if (!valid_utf8(text, &bad))
    return fail(Errc::bad_input, cat(where, ": not UTF-8 at ", line_and_column(text, bad)));
  const JsonBounds bounds{.depth = limits.depth,
                          .values = max_json_values(limits),
                          .in_container = max_values_in_container};
  if (auto value = parse_valid_json(text, bounds)) return std::move(*value);
  return parse_json_with_library(text, where, bounds);
}

Result<Json> read_json(const std::string& path, JsonLimits limits) {
  limits.bytes = std::min(limits.bytes, max_json_bytes);
  auto text = read_file(path, limits.bytes);
  RETURN_IF_ERROR(text);
  return parse_json(*text, path, limits);
}

}  // namespace troupe
