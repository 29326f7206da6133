// Methods of strings (Python's str), on UTF-8.
#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "engine/tokenizer/jinja/case.h"
#include "engine/tokenizer/jinja/machine.h"
#include "engine/tokenizer/utf8.h"

namespace troupe::engine::tokenizer::jinja {
namespace {

using Method = Value (*)(Machine&, const std::string&, const Arguments&);

const std::string* text_argument(const Arguments& arguments, std::size_t index, std::string_view name) {
  const Value* given = arguments.find(index, name);
  return given && !given->is(Value::Type::none) ? &to_text(*given, cat("the argument ", index + 1)) : nullptr;
}
const std::string& needed_text(const Arguments& arguments, std::size_t index, std::string_view name) {
  const std::string* found = text_argument(arguments, index, name);
  if (!found) raise(cat("a string is expected as argument ", index + 1));
  return *found;
}
std::int64_t integer_argument(const Arguments& arguments, std::size_t index, std::string_view name, std::int64_t otherwise) {
  const Value* given = arguments.find(index, name);
  return given && !given->is(Value::Type::none) ? to_integer(*given, cat("the argument ", index + 1)) : otherwise;
}

Value split(Machine& machine, const std::string& text, const Arguments& arguments) {
  const std::string* separator = text_argument(arguments, 0, "sep");
  std::int64_t most = integer_argument(arguments, 1, "maxsplit", -1);
  List out;
  machine.charge(text.size() / 16);
  if (!separator) {
    std::size_t at = 0;
    const auto skip = [&](bool space) {
      while (at < text.size() && is_whitespace(code_point_at(text, at).value) == space) at += utf8_length(text[at]);
    };
    for (skip(true); at < text.size(); skip(true)) {
      const std::size_t begin = at;
      if (most-- == 0) {
        out.items.emplace_back(strip_text(text.substr(begin), nullptr, false, true));
        break;
      }
      skip(false);
      out.items.emplace_back(text.substr(begin, at - begin));
    }
    return out;
  }
  if (separator->empty()) raise("empty separator");
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(*separator, from)) != std::string::npos && most-- != 0; from = at + separator->size())
    out.items.emplace_back(text.substr(from, at - from));
  out.items.emplace_back(text.substr(from));
  return out;
}

Value rsplit(Machine& machine, const std::string& text, const Arguments& arguments) {
  const std::string* separator = text_argument(arguments, 0, "sep");
  std::int64_t most = integer_argument(arguments, 1, "maxsplit", -1);
  if (most < 0) return split(machine, text, arguments);
  machine.charge(text.size() / 16);
  List out;
  std::string rest = separator ? text : strip_text(text, nullptr, false, true);
  while (most-- > 0) {
    std::size_t at = std::string::npos, width = 0;
    if (separator) {
      if (separator->empty()) raise("empty separator");
      at = rest.rfind(*separator), width = separator->size();
    } else {
      for (std::size_t i = 0; i < rest.size(); i += utf8_length(rest[i]))
        if (is_whitespace(code_point_at(rest, i).value)) at = i, width = utf8_length(rest[i]);
    }
    if (at == std::string::npos) break;
    out.items.emplace_back(rest.substr(at + width));
    rest.resize(at);
    if (!separator) rest = strip_text(rest, nullptr, false, true);
    machine.charge(1 + rest.size() / 64);
  }
  if (separator || !strip_text(rest, nullptr, true, false).empty())
    out.items.emplace_back(separator ? rest : strip_text(rest, nullptr, true, false));
  std::reverse(out.items.begin(), out.items.end());
  return out;
}

Value splitlines(Machine&, const std::string& text, const Arguments& arguments) {
  const Value* keep = arguments.find(0, "keepends");
  List out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n\v\f", at), text.size());
    std::size_t next = std::min(end + 1, text.size());
    if (end + 1 < text.size() && text[end] == '\r' && text[end + 1] == '\n') ++next;
    out.items.emplace_back(text.substr(at, (keep && keep->truth() ? next : end) - at));
    at = next;
  }
  return out;
}

bool begins(const std::string& text, const Value& what, bool at_end) {
  if (what.is(Value::Type::list) && what.list().kind == List::Kind::tuple)
    return std::any_of(what.list().items.begin(), what.list().items.end(), [&](const Value& one) { return begins(text, one, at_end); });
  const std::string& part = to_text(what, "the first argument of startswith or endswith");
  return at_end ? text.ends_with(part) : text.starts_with(part);
}
const Value& needed(const Arguments& arguments, std::size_t index) {
  if (index >= arguments.positional.size()) raise(cat("argument ", index + 1, " is missing"));
  return arguments.positional[index];
}

// The offset in code points, or -1.
std::int64_t find(const std::string& text, const Arguments& arguments, bool last) {
  const std::string& what = needed_text(arguments, 0, "sub");
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  const auto bound = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  const std::int64_t start = bound(integer_argument(arguments, 1, "start", 0)), stop = bound(integer_argument(arguments, 2, "end", size));
  std::size_t from = 0, to = 0;
  for (std::int64_t i = 0; i < stop; ++i) {
    if (i < start) from += utf8_length(text[from]);
    to += utf8_length(text[to]);
  }
  if (start > stop) return -1;
  const std::string_view part = std::string_view(text).substr(from, to - from);
  const auto at = last ? part.rfind(what) : part.find(what);
  return at == std::string_view::npos ? -1 : start + static_cast<std::int64_t>(count_code_points(part.substr(0, at)));
}
std::int64_t index(const std::string& text, const Arguments& arguments, bool last) {
  const std::int64_t at = find(text, arguments, last);
  if (at < 0) raise("substring not found");
  return at;
}

Value count(Machine& machine, const std::string& text, const Arguments& arguments) {
  const std::string& what = needed_text(arguments, 0, "sub");
  machine.charge(text.size() / 64);
  if (what.empty()) return count_code_points(text) + 1;
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

Value replace(Machine& machine, const std::string& text, const Arguments& arguments) {
  return replace_text(machine, text, needed_text(arguments, 0, "old"), needed_text(arguments, 1, "new"),
                      integer_argument(arguments, 2, "count", -1));
}

Value join(Machine& machine, const std::string& text, const Arguments& arguments) {
  std::string out;
  bool first = true;
  for (const Value& item : machine.items_of(needed(arguments, 0))) {
    const std::string& part = to_text(item, "each item to join");
    machine.reserve(out.size() + text.size() + part.size() > (1u << 20) ? out.size() + text.size() + part.size()
                                                                        : part.size() + text.size());
    if (!std::exchange(first, false)) out += text;
    out += part;
  }
  return out;
}

Value partition(const std::string& text, const Arguments& arguments, bool last) {
  const std::string& separator = needed_text(arguments, 0, "sep");
  if (separator.empty()) raise("empty separator");
  const auto at = last ? text.rfind(separator) : text.find(separator);
  List out;
  out.kind = List::Kind::tuple;
  if (at == std::string::npos) {
    out.items = last ? std::vector<Value>{"", "", text} : std::vector<Value>{text, "", ""};
  } else {
    out.items = {text.substr(0, at), separator, text.substr(at + separator.size())};
  }
  return out;
}

enum class Side { left, right, both };
Value pad(Machine& machine, const std::string& text, const Arguments& arguments, Side side) {
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  const std::int64_t missing = std::max<std::int64_t>(integer_argument(arguments, 0, "width", 0) - size, 0);
  const std::string* fill = text_argument(arguments, 1, "fillchar");
  const std::string filler = fill ? *fill : " ";
  machine.reserve(text.size() + static_cast<std::size_t>(missing) * filler.size());
  // Python's str.center puts the odd one left when the width is odd, right otherwise.
  const std::int64_t left = side == Side::left ? missing : side == Side::right ? 0 : missing / 2 + (missing & (missing + size) & 1);
  std::string out;
  for (std::int64_t i = 0; i < left; ++i) out += filler;
  out += text;
  for (std::int64_t i = left; i < missing; ++i) out += filler;
  return out;
}

Value zfill(Machine& machine, const std::string& text, const Arguments& arguments) {
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const std::int64_t missing = integer_argument(arguments, 0, "width", 0) - static_cast<std::int64_t>(count_code_points(text));
  if (missing <= 0) return text;
  machine.reserve(text.size() + static_cast<std::size_t>(missing));
  return text.substr(0, sign) + std::string(static_cast<std::size_t>(missing), '0') + text.substr(sign);
}

Value strip(const std::string& text, const Arguments& arguments, bool left, bool right) {
  return strip_text(text, text_argument(arguments, 0, "chars"), left, right);
}

const std::map<std::string_view, Method>& methods() {
  using M = Machine;
  using S = std::string;
  using A = Arguments;
  static const std::map<std::string_view, Method> table = {
      {"strip", [](M&, const S& s, const A& a) { return strip(s, a, true, true); }},
      {"lstrip", [](M&, const S& s, const A& a) { return strip(s, a, true, false); }},
      {"rstrip", [](M&, const S& s, const A& a) { return strip(s, a, false, true); }},
      {"split", split},
      {"rsplit", rsplit},
      {"splitlines", splitlines},
      {"startswith", [](M&, const S& s, const A& a) -> Value { return begins(s, needed(a, 0), false); }},
      {"endswith", [](M&, const S& s, const A& a) -> Value { return begins(s, needed(a, 0), true); }},
      {"upper", [](M&, const S& s, const A&) -> Value { return upper(s); }},
      {"lower", [](M&, const S& s, const A&) -> Value { return lower(s); }},
      {"casefold", [](M&, const S& s, const A&) -> Value { return lower(s); }},
      {"title", [](M&, const S& s, const A&) -> Value { return title(s); }},
      {"capitalize", [](M&, const S& s, const A&) -> Value { return capitalize(s); }},
      {"swapcase", [](M&, const S& s, const A&) -> Value { return swap_case(s); }},
      {"replace", replace},
      {"find", [](M&, const S& s, const A& a) -> Value { return find(s, a, false); }},
      {"rfind", [](M&, const S& s, const A& a) -> Value { return find(s, a, true); }},
      {"index", [](M&, const S& s, const A& a) -> Value { return index(s, a, false); }},
      {"rindex", [](M&, const S& s, const A& a) -> Value { return index(s, a, true); }},
      {"count", count},
      {"join", join},
      {"partition", [](M&, const S& s, const A& a) { return partition(s, a, false); }},
      {"rpartition", [](M&, const S& s, const A& a) { return partition(s, a, true); }},
      {"center", [](M& m, const S& s, const A& a) { return pad(m, s, a, Side::both); }},
      {"ljust", [](M& m, const S& s, const A& a) { return pad(m, s, a, Side::right); }},
      {"rjust", [](M& m, const S& s, const A& a) { return pad(m, s, a, Side::left); }},
      {"zfill", zfill},
      {"format", [](M& m, const S& s, const A& a) { return format_braces(m, s, a); }},
      {"removeprefix",
       [](M&, const S& s, const A& a) -> Value {
         return s.starts_with(needed_text(a, 0, "prefix")) ? s.substr(needed_text(a, 0, "prefix").size()) : s;
       }},
      {"removesuffix",
       [](M&, const S& s, const A& a) -> Value {
         return s.ends_with(needed_text(a, 0, "suffix")) ? s.substr(0, s.size() - needed_text(a, 0, "suffix").size()) : s;
       }},
      {"isdigit", [](M&, const S& s, const A&) -> Value { return every(s, CharacterClass::digit); }},
      {"isdecimal", [](M&, const S& s, const A&) -> Value { return every(s, CharacterClass::digit); }},
      {"isnumeric", [](M&, const S& s, const A&) -> Value { return every(s, CharacterClass::numeric); }},
      {"isalpha", [](M&, const S& s, const A&) -> Value { return every(s, CharacterClass::letter); }},
      {"isalnum", [](M&, const S& s, const A&) -> Value { return every(s, CharacterClass::letter_or_number); }},
      {"isspace", [](M&, const S& s, const A&) -> Value { return every(s, CharacterClass::space); }},
      {"isupper", [](M&, const S& s, const A&) -> Value { return upper(s) == s && lower(s) != s; }},
      {"islower", [](M&, const S& s, const A&) -> Value { return lower(s) == s && upper(s) != s; }},
  };
  return table;
}

}  // namespace

std::optional<Value> string_method(const Value& text, std::string_view name) {
  const auto found = methods().find(name);
  if (found == methods().end()) return std::nullopt;
  return make_function("method", [text, method = found->second](Machine& machine, Arguments& arguments) {
    machine.charge(text.string().size() / 64);
    return method(machine, text.string(), arguments);
  });
}

}  // namespace troupe::engine::tokenizer::jinja
