#include "engine/base/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/base/file.h"
#include "engine/base/text.h"

namespace troupe {

const char* Json::type_name() const {
  constexpr const char* names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
  return names[value_.index()];
}

bool Json::boolean() const { return check(is_bool(), "Json: not a boolean"), std::get<bool>(value_); }
std::int64_t Json::integer() const { return check(is_integer(), "Json: not an integer"), std::get<std::int64_t>(value_); }
double Json::number() const {
  check(is_number(), "Json: not a number");
  return is_integer() ? static_cast<double>(integer()) : std::get<double>(value_);
}
const std::string& Json::string() const { return check(is_string(), "Json: not a string"), std::get<std::string>(value_); }
const Json::Array& Json::array() const { return check(is_array(), "Json: not an array"), std::get<Array>(value_); }
const Json::Object& Json::object() const { return check(is_object(), "Json: not an object"), std::get<Object>(value_); }
Json::Array& Json::array() { return check(is_array(), "Json: not an array"), std::get<Array>(value_); }
Json::Object& Json::object() { return check(is_object(), "Json: not an object"), std::get<Object>(value_); }

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

// Text, its longest string and the values stay below 200 MB together, whoever asks. A value takes 40 bytes and more, and may be written
// with two; the largest tokenizer.json of today has two and a half million. A list that grows is there twice for a moment.
constexpr std::size_t most_bytes = std::size_t{64} << 20, most_in_one = std::size_t{1} << 20;
std::size_t most_values(const JsonLimits& limits) { return std::clamp<std::size_t>(limits.bytes / 8, 4096, 3'000'000); }

// The first key that stands twice, or nullptr.
const std::string* repeated_key(const Json::Object& members) {
  std::vector<const std::string*> keys;
  keys.reserve(members.size());
  for (const auto& member : members) keys.push_back(&member.first);
  std::sort(keys.begin(), keys.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto twice = std::adjacent_find(keys.begin(), keys.end(), [](const auto* a, const auto* b) { return *a == *b; });
  return twice == keys.end() ? nullptr : *twice;
}

// Builds the value while the library reads, so that depth and size are refused before they cost anything.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const JsonLimits& limits) : limit_(limits.depth), most_(most_values(limits)) {}
  Json root;
  std::string problem;
  std::size_t position = 0;

  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(std::int64_t value) override { return put(Json(value)); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return put(Json(static_cast<double>(value)));
    return put(Json(value));
  }
  bool number_float(double value, const std::string& text) override {
    if (!std::isfinite(value)) return refuse(cat("the number ", text, " does not fit a double"));
    return put(Json(value));
  }
  bool string(std::string& value) override { return put(Json(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) override { return refuse("binary data"); }
  bool key(std::string& name) override {
    levels_.back().key = std::move(name);
    return count();
  }
  bool start_object(std::size_t) override { return open(Json(Json::Object{})); }
  bool start_array(std::size_t) override { return open(Json(Json::Array{})); }
  bool end_object() override {
    if (const std::string* twice = repeated_key(levels_.back().value.object()))
      return refuse(cat("the key ", quote(*twice), " stands twice in one object"));
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    position = at;
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while ...", "[...] number overflow parsing '1e400'"
    problem = error.what();
    const auto told = problem.find("syntax error"), tag = problem.find("] ");
    problem.erase(0, told != std::string::npos ? told : tag != std::string::npos ? tag + 2 : 0);
    return false;
  }

 private:
  struct Level {
    Json value;
    std::string key;
    std::size_t size = 0;
  };

  bool refuse(std::string why) { return problem = std::move(why), false; }
  bool open(Json value) {
    if (levels_.size() >= limit_) return refuse(cat("nested deeper than ", limit_, " levels"));
    levels_.push_back({std::move(value), {}, 0});
    return true;
  }
  bool count() {
    if (++values_ > most_) return refuse(cat("more than ", most_, " values; no more are read"));
    return true;
  }
  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return put(std::move(value));
  }
  bool put(Json value) {
    if (!count()) return false;
    if (!levels_.empty() && levels_.back().size++ >= most_in_one)
      return refuse(cat("more than ", most_in_one, " values in one list or object; no more are read"));
    if (levels_.empty()) {
      root = std::move(value);
    } else if (levels_.back().value.is_array()) {
      levels_.back().value.array().push_back(std::move(value));
    } else {
      levels_.back().value.object().emplace_back(std::move(levels_.back().key), std::move(value));
    }
    return true;
  }

  std::size_t limit_, most_, values_ = 0;
  std::vector<Level> levels_;
};

std::string place(std::string_view text, std::size_t offset) {
  const auto head = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(head.begin(), head.end(), '\n') + 1;
  const auto column = head.size() - (head.rfind('\n') == std::string_view::npos ? 0 : head.rfind('\n') + 1);
  return cat("line ", line, ", column ", column);
}

tl::unexpected<Error> wrong_type(const Json& object, std::string_view key, std::string_view where, std::string_view wanted) {
  const Json* member = object.find(key);
  if (!member) return fail(Errc::bad_input, cat(where, ": the key \"", key, "\" (", wanted, ") is missing"));
  return fail(Errc::bad_input, cat(where, ": \"", key, "\" must be ", wanted, ", found ", quote(member->dump(), 40)));
}

}  // namespace

std::string Json::dump() const { return dump(-1); }
std::string Json::dump(int indent) const {
  std::string out;
  write(out, *this, indent, 0);
  return out;
}

Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
  limits.bytes = std::min(limits.bytes, most_bytes);
  if (text.size() > limits.bytes)
    return fail(Errc::bad_input, cat(where, ": ", text.size(), " bytes of JSON, at most ", limits.bytes, " are read"));
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t bad = 0;
  if (!valid_utf8(text, &bad)) return fail(Errc::bad_input, cat(where, ": not UTF-8 at ", place(text, bad)));
  Builder builder(limits);
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.root);
  const std::string at = builder.position ? cat(" at ", place(text, builder.position)) : std::string();
  return fail(Errc::bad_input, cat(where, ": not valid JSON", at, ": ", builder.problem));
}

Result<Json> read_json(const std::string& path, JsonLimits limits) {
  limits.bytes = std::min(limits.bytes, most_bytes);
  auto text = read_file(path, limits.bytes);
  if (!text) return fail(text.error());
  return parse_json(*text, path, limits);
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
