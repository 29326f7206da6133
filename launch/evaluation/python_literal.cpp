#include "launch/evaluation/python_literal.h"

#include <charconv>
#include <string>

#include "engine/base/text/utf8.h"

namespace troupe::launch::evaluation {
namespace {

constexpr int max_depth = 32;

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  std::optional<Json> run() {
    auto out = value(0);
    skip_space();
    return at_ == in_.size() ? out : std::nullopt;
  }

 private:
  void skip_space() {
    while (at_ < in_.size() && (in_[at_] == ' ' || (in_[at_] >= '\t' && in_[at_] <= '\r'))) ++at_;
  }
  bool skip(std::string_view word) {
    skip_space();
    if (!in_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::optional<Json> value(int depth) {
    if (depth > max_depth) return std::nullopt;
    if (skip("True")) return Json(true);
    if (skip("False")) return Json(false);
    if (skip("None")) return Json();
    if (skip("[")) return items("]", depth);
    if (skip("(")) return items(")", depth);
    if (skip("{")) return members(depth);
    if (at_ < in_.size() && (in_[at_] == '\'' || in_[at_] == '"')) return string();
    return number();
  }

  std::optional<Json> items(std::string_view end, int depth) {
    Json::Array out;
    while (!skip(end)) {
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      out.push_back(std::move(*item));
      if (!skip(",") && !in_.substr(at_).starts_with(end)) return std::nullopt;
    }
    return Json(std::move(out));
  }

  std::optional<Json> members(int depth) {
    Json::Object out;
    while (!skip("}")) {
      auto key = value(depth + 1);
      if (!key || !key->is_string() || !skip(":")) return std::nullopt;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      out.emplace_back(key->string(), std::move(*item));
      if (!skip(",") && !in_.substr(at_).starts_with("}")) return std::nullopt;
    }
    return Json(std::move(out));
  }

  std::optional<Json> string() {
    const char quote = in_[at_++];
    std::string out;
    while (at_ < in_.size() && in_[at_] != quote) {
      if (in_[at_] == '\n') return std::nullopt;
      if (in_[at_] != '\\')
        out += in_[at_++];
      else if (!escape(out))
        return std::nullopt;
    }
    if (at_ >= in_.size()) return std::nullopt;
    ++at_;
    return Json(std::move(out));
  }

  bool escape(std::string& out) {
    if (++at_ >= in_.size()) return false;
    const char c = in_[at_++];
    constexpr std::string_view names = "ntr\\'\"abfv0", meanings{"\n\t\r\\'\"\a\b\f\v\0", 11};
    if (const auto known = names.find(c); known != std::string_view::npos) {
      out += meanings[known];
      return true;
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0 || at_ + digits > in_.size()) return false;
    std::uint32_t point = 0;
    const char* end = in_.data() + at_ + digits;
    if (std::from_chars(in_.data() + at_, end, point, 16).ptr != end || point > 0x10FFFF)
      return false;
    at_ += digits;
    append_utf8(out, point);
    return true;
  }

  std::optional<Json> number() {
    const std::size_t begin = at_;
    while (at_ < in_.size() &&
           std::string_view("+-.0123456789eE_").find(in_[at_]) != std::string_view::npos)
      ++at_;
    const std::string text(in_.substr(begin, at_ - begin));
    const char *first = text.data() + (text.starts_with('+') ? 1 : 0),
               *last = text.data() + text.size();
    if (first == last) return std::nullopt;
    std::int64_t whole = 0;
    if (const auto read = std::from_chars(first, last, whole);
        read.ec == std::errc() && read.ptr == last)
      return Json(whole);
    double real = 0;
    if (const auto read = std::from_chars(first, last, real);
        read.ec == std::errc() && read.ptr == last)
      return Json(real);
    return std::nullopt;
  }

  std::string_view in_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<Json> parse_python_literal(std::string_view text) {
  return Parser(text).run();
}

}  // namespace troupe::launch::evaluation
