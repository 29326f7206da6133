#include "engine/jinja/string_search.h"

#include <algorithm>
#include <cstring>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"

namespace troupe::engine::jinja {

const std::string* text_argument(const Arguments& arguments, std::size_t index,
                                 std::string_view name) {
  const Value* given = arguments.find(index, name);
  return given && !given->is(Value::Type::none) ? &to_text(*given, cat("the argument ", index + 1))
                                                : nullptr;
}
const std::string& needed_text(const Arguments& arguments, std::size_t index,
                               std::string_view name) {
  const std::string* found = text_argument(arguments, index, name);
  if (!found) raise(cat("a string is expected as argument ", index + 1));
  return *found;
}
std::int64_t integer_argument(const Arguments& arguments, std::size_t index, std::string_view name,
                              std::int64_t otherwise) {
  const Value* given = arguments.find(index, name);
  return given && !given->is(Value::Type::none)
             ? to_integer(*given, cat("the argument ", index + 1))
             : otherwise;
}

std::size_t find_text(std::string_view text, std::string_view what, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (what.empty() || what.size() > text.size() - from)
    return what.empty() ? from : std::string_view::npos;
  const void* found = ::memmem(text.data() + from, text.size() - from, what.data(), what.size());
  const std::size_t at =
      found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data())
            : std::string_view::npos;
  work(16 + 8 * what.size() + (what.size() > 1 ? 4 : 1) * (std::min(at, text.size()) - from));
  return at;
}

std::size_t rfind_text(std::string_view text, std::string_view what) {
  const std::string backwards(text.rbegin(), text.rend()), sought(what.rbegin(), what.rend());
  const std::size_t at = find_text(backwards, sought);
  return at == std::string_view::npos ? at : text.size() - at - what.size();
}

namespace {

// The range [start:stop] of a text for find, count and startswith; nullopt if start is beyond the
// end.
struct Window {
  std::string_view text;
  std::int64_t start = 0;
};
std::optional<Window> window(const std::string& text, const Arguments& arguments) {
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  const auto bound = [&](std::size_t index, std::int64_t otherwise) {
    const std::int64_t at = integer_argument(arguments, index, "", otherwise);
    return at < 0 ? std::max<std::int64_t>(at + size, 0) : at;
  };
  const std::int64_t start = bound(1, 0), stop = std::min(bound(2, size), size);
  if (start > stop) return std::nullopt;
  std::size_t from = 0, to = 0;
  for (std::int64_t i = 0; i < stop; ++i) {
    if (i < start) from += utf8_length(text[from]);
    to += utf8_length(text[to]);
  }
  return Window{std::string_view(text).substr(from, to - from), start};
}

bool begins(std::string_view text, const Value& what, bool at_end, bool alone = true) {
  if (alone && what.is(Value::Type::list) && what.list().kind == List::Kind::tuple)
    return std::any_of(what.list().items.begin(), what.list().items.end(),
                       [&](const Value& one) { return begins(text, one, at_end, false); });
  const std::string& part = to_text(what, "the first argument of startswith or endswith");
  work(8 + part.size());
  return at_end ? text.ends_with(part) : text.starts_with(part);
}
Value begins_inside(const std::string& text, const Arguments& arguments, bool at_end) {
  const auto inside = window(text, arguments);
  const bool found = begins(inside ? inside->text : "", arguments.positional[0], at_end);
  return inside && found;
}

// The offset in code points, or -1.
std::int64_t find(const std::string& text, const Arguments& arguments, bool last) {
  const std::string& what = needed_text(arguments, 0, "sub");
  const auto inside = window(text, arguments);
  if (!inside) return -1;
  const auto at = last ? rfind_text(inside->text, what) : find_text(inside->text, what);
  return at == std::string_view::npos
             ? -1
             : inside->start +
                   static_cast<std::int64_t>(count_code_points(inside->text.substr(0, at)));
}
std::int64_t index(const std::string& text, const Arguments& arguments, bool last) {
  const std::int64_t at = find(text, arguments, last);
  if (at < 0) raise("substring not found");
  return at;
}

Value count(Runtime&, const std::string& text, const Arguments& arguments) {
  const std::string& what = needed_text(arguments, 0, "sub");
  const auto inside = window(text, arguments);
  if (!inside) return 0;
  if (what.empty()) return count_code_points(inside->text) + 1;
  std::size_t found = 0;
  for (std::size_t at = find_text(inside->text, what); at != std::string::npos;
       at = find_text(inside->text, what, at + what.size()))
    ++found;
  return found;
}

using M = Runtime;
using S = std::string;
using A = Arguments;

}  // namespace

const std::map<std::string_view, Method>& string_questions() {
  using Class = CharacterClass;
  static const std::map<std::string_view, Method> table = {
      {"startswith",
       {[](M&, const S& s, const A& a) { return begins_inside(s, a, false); },
        "/ prefix start? end?"}},
      {"endswith",
       {[](M&, const S& s, const A& a) { return begins_inside(s, a, true); },
        "/ suffix start? end?"}},
      {"find",
       {[](M&, const S& s, const A& a) -> Value { return find(s, a, false); },
        "/ sub start? end?"}},
      {"rfind",
       {[](M&, const S& s, const A& a) -> Value { return find(s, a, true); }, "/ sub start? end?"}},
      {"index",
       {[](M&, const S& s, const A& a) -> Value { return index(s, a, false); },
        "/ sub start? end?"}},
      {"rindex",
       {[](M&, const S& s, const A& a) -> Value { return index(s, a, true); },
        "/ sub start? end?"}},
      {"count", {count, "/ sub start? end?"}},
      {"isdigit", {[](M&, const S& s, const A&) -> Value { return every(s, Class::digit); }, ""}},
      {"isdecimal",
       {[](M&, const S& s, const A&) -> Value { return every(s, Class::decimal); }, ""}},
      {"isnumeric",
       {[](M&, const S& s, const A&) -> Value { return every(s, Class::numeric); }, ""}},
      {"isalpha", {[](M&, const S& s, const A&) -> Value { return every(s, Class::letter); }, ""}},
      {"isalnum",
       {[](M&, const S& s, const A&) -> Value { return every(s, Class::letter_or_number); }, ""}},
      {"isspace", {[](M&, const S& s, const A&) -> Value { return every(s, Class::space); }, ""}},
      {"isascii", {[](M&, const S& s, const A&) -> Value { return every(s, Class::ascii); }, ""}},
      {"isprintable",
       {[](M&, const S& s, const A&) -> Value { return every(s, Class::printable); }, ""}},
      {"isidentifier", {[](M&, const S& s, const A&) -> Value { return is_identifier(s); }, ""}},
      {"isupper", {[](M&, const S& s, const A&) -> Value { return is_upper(s); }, ""}},
      {"islower", {[](M&, const S& s, const A&) -> Value { return is_lower(s); }, ""}},
      {"istitle", {[](M&, const S& s, const A&) -> Value { return is_title(s); }, ""}},
  };
  return table;
}

}  // namespace troupe::engine::jinja
