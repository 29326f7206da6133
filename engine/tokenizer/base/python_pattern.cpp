#include "engine/tokenizer/base/python_pattern.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::string_view space_characters = R"(\s\x1c-\x1f)";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Translation {
 public:
  Translation(std::string_view pattern, std::string_view where) : in_(pattern), where_(where) {}

  Result<std::string> run() {
    while (at_ < in_.size()) RETURN_IF_ERROR(next());
    if (in_class_) return wrong(Errc::bad_input, "a class [ that does not end");
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> wrong(Errc code, std::string_view what) const {
    return fail(code,
                cat(where_, ": the regular expression ", quote(in_), ": ", what, " at byte ", at_));
  }
  bool at(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  void copy(std::size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }

  Result<> next() {
    const char c = in_[at_];
    if (c == '\\') return escape();
    if (in_class_) {
      // The first ] of a class is a member of it.
      if (c == ']' && at_ > class_start_) in_class_ = false;
      if (c == '[') out_ += '\\';  // [:name:] is no class of characters
    } else if (c == '[') {
      in_class_ = true;
      copy(at("[^") ? 2 : 1);
      class_start_ = at_;
      return {};
    } else if (c == '(') {
      return group();
    } else if (c == '{' && repeat()) {
      return {};
    }
    copy(1);
    return {};
  }

  // {,n} and {,}
  bool repeat() {
    if (!at("{,")) return false;
    std::size_t end = at_ + 2;
    while (end < in_.size() && is_digit(in_[end])) ++end;
    if (end >= in_.size() || in_[end] != '}') return false;
    out_ += cat("{0,", in_.substr(at_ + 2, end - at_ - 2), "}");
    at_ = end + 1;
    return true;
  }

  Result<> escape() {
    if (at_ + 1 >= in_.size()) return wrong(Errc::bad_input, "a backslash at the end");
    const char c = in_[at_ + 1];
    if (c == 'u' || c == 'U') return code_point(c == 'u' ? 4 : 8);
    if (c == 'N') return wrong(Errc::unsupported, "characters by name are not read");
    if (c == 's' || (c == 'S' && !in_class_)) {
      out_ += in_class_ ? std::string(space_characters)
                        : cat(c == 's' ? "[" : "[^", space_characters, "]");
      at_ += 2;
      return {};
    }
    if (c == 'v') out_ += "\\x0b";
    if (c == 'Z' && !in_class_) out_ += "\\z";
    if (c == 'v' || (c == 'Z' && !in_class_)) {
      at_ += 2;
      return {};
    }
    constexpr std::string_view outside = "AbBdDSwWntrfax", inside = "bdDSwWntrfax";
    if (is_letter(c) && (in_class_ ? inside : outside).find(c) == std::string_view::npos)
      return wrong(Errc::bad_input, cat("the escape \\", c, " is none of Python's"));
    copy(2);
    return {};
  }

  Result<> code_point(std::size_t digits) {
    const std::string_view hex = in_.substr(std::min(at_ + 2, in_.size()), digits);
    const bool valid = hex.size() == digits && std::ranges::all_of(hex, [](char c) {
                         return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
                       });
    if (!valid) return wrong(Errc::bad_input, "an incomplete escape");
    out_ += cat("\\x{", hex, "}");
    at_ += 2 + digits;
    return {};
  }

  Result<> group() {
    if (at("(*")) return wrong(Errc::bad_input, "nothing to repeat");
    if (!at("(?")) {
      copy(1);
      return {};
    }
    for (const std::string_view known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?#", "(?P<", "(?P=", "(?("})
      if (at(known)) {
        copy(known.size());
        return {};
      }
    return flags();
  }

  // (?ims), which Python takes at the start of a pattern only, and (?ims-x:
  Result<> flags() {
    std::size_t end = at_ + 2;
    std::string kept = "(?";
    for (; end < in_.size() && (is_letter(in_[end]) || in_[end] == '-'); ++end) {
      if (std::string_view("imsxu-").find(in_[end]) == std::string_view::npos)
        return wrong(Errc::unsupported, cat("the flag ", in_[end]));
      if (in_[end] != 'u') kept += in_[end];
    }
    const char last = end < in_.size() ? in_[end] : '\0';
    if (end == at_ + 2 || (last != ')' && last != ':') || (last == ')' && at_ > 0))
      return wrong(Errc::unsupported, "a group that Python does not have");
    out_ += kept + last;
    at_ = end + 1;
    return {};
  }

  std::string_view in_, where_;
  std::string out_;
  std::size_t at_ = 0, class_start_ = 0;
  bool in_class_ = false;
};

}  // namespace

Result<std::string> translate_python(std::string_view pattern, std::string_view where) {
  return Translation(pattern, where).run();
}

}  // namespace troupe::engine::tokenizer
