// JSON text read within bounds; the value itself and how it is written: json_value.cpp.
#include "engine/base/json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/base/file.h"
#include "engine/base/text.h"

namespace troupe {
namespace {

// Text, its longest string and the values stay below 200 MB together, whoever asks. A value takes
// 40 bytes and more, and may be written with two; the largest tokenizer.json of today has two and a
// half million. A list that grows is there twice for a moment.
constexpr std::size_t most_bytes = std::size_t{64} << 20, most_in_one = std::size_t{1} << 20;
std::size_t most_values(const JsonLimits& limits) {
  return std::clamp<std::size_t>(limits.bytes / 8, 4096, 3'000'000);
}

// A member whose key another one before it has, or nothing.
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

// The text for the library, which says only of malformed text how far it has read: counted here for
// what else is refused.
class Characters {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  Characters(const char* at, std::size_t* read) : at_(at), read_(read) {}
  reference operator*() const { return *at_; }
  Characters& operator++() { return ++at_, ++*read_, *this; }
  bool operator==(const Characters& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* read_;
};

// What the library says holds what it read last, however long that is: its beginning and its end
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

// Builds the value while the library reads, so that depth and size are refused before they cost
// anything.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const JsonLimits& limits) : limit_(limits.depth), most_(most_values(limits)) {}
  Json root;
  std::string problem;
  std::size_t read = 0;      ///< bytes that the library has taken
  std::size_t position = 0;  ///< of the problem: bytes up to its last one

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
    refuse(cat("the key ", quote(members[*twice].first), " stands twice in one object"));
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
    const auto told = problem.find("syntax error"), tag = problem.find("] ");
    problem.erase(0, told != std::string::npos ? told : tag != std::string::npos ? tag + 2 : 0);
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
    problem = std::move(why), position = read;
    return false;
  }
  bool open(Json value) {
    if (levels_.size() >= limit_) return refuse(cat("nested deeper than ", limit_, " levels"));
    levels_.push_back({std::move(value), {}, {}, 0});
    return true;
  }
  bool count() {
    if (++values_ > most_) return refuse(cat("more than ", most_, " values; no more are read"));
    return true;
  }
  // The library has taken the character behind a number too.
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
    if (!levels_.empty() && levels_.back().size++ >= most_in_one)
      return refuse(
          cat("more than ", most_in_one, " values in one list or object; no more are read"));
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
  const auto column =
      head.size() - (head.rfind('\n') == std::string_view::npos ? 0 : head.rfind('\n') + 1);
  return cat("line ", line, ", column ", column);
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
  limits.bytes = std::min(limits.bytes, most_bytes);
  if (text.size() > limits.bytes)
    return fail(Errc::bad_input, cat(where, ": ", text.size(), " bytes of JSON, at most ",
                                     limits.bytes, " are read"));
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t bad = 0;
  if (!valid_utf8(text, &bad))
    return fail(Errc::bad_input, cat(where, ": not UTF-8 at ", place(text, bad)));
  Builder builder(limits);
  const Characters begin(text.data(), &builder.read), end(text.data() + text.size(), &builder.read);
  if (nlohmann::json::sax_parse(begin, end, &builder)) return std::move(builder.root);
  return fail(Errc::bad_input, cat(where, ": not valid JSON at ", place(text, builder.position),
                                   ": ", builder.problem));
}

Result<Json> read_json(const std::string& path, JsonLimits limits) {
  limits.bytes = std::min(limits.bytes, most_bytes);
  auto text = read_file(path, limits.bytes);
  RETURN_IF_ERROR(text);
  return parse_json(*text, path, limits);
}

}  // namespace troupe
