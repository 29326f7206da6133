#include "engine/jinja/string_methods.h"

#include <algorithm>
#include <map>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/format.h"
#include "engine/jinja/format_braces.h"
#include "engine/jinja/string_search.h"

namespace troupe::engine::jinja {
namespace {

// The parts between runs of white space. The rest after `maximum` splits keeps its end.
List split_at_spaces(const std::string& text, std::int64_t maximum) {
  List out;
  std::size_t at = 0;
  const auto skip = [&](bool space) {
    while (at < text.size() && is_python_space(code_point_at(text, at).value) == space)
      at += utf8_length(text[at]);
  };
  for (skip(true); at < text.size(); skip(true)) {
    const std::size_t begin = at;
    if (maximum-- == 0)
      at = text.size();
    else
      skip(false);
    out.items.emplace_back(text.substr(begin, at - begin));
  }
  return out;
}

// The same from the end: the rest before `maximum` splits keeps its beginning.
List rsplit_at_spaces(const std::string& text, std::int64_t maximum) {
  List out;
  std::size_t at = text.size();
  const auto before = [&] {
    std::size_t last = at - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    return last;
  };
  const auto skip = [&](bool space) {
    while (at > 0 && is_python_space(code_point_at(text, before()).value) == space) at = before();
  };
  for (skip(true); at > 0; skip(true)) {
    const std::size_t end = at;
    if (maximum-- == 0)
      at = 0;
    else
      skip(false);
    out.items.emplace_back(text.substr(at, end - at));
  }
  std::reverse(out.items.begin(), out.items.end());
  return out;
}

List split_at(std::string_view text, std::string_view separator, std::int64_t maximum) {
  List out;
  std::size_t from = 0;
  for (std::size_t at;
       maximum-- != 0 && (at = find_text(text, separator, from)) != std::string::npos;
       from = at + separator.size())
    out.items.emplace_back(text.substr(from, at - from));
  out.items.emplace_back(text.substr(from));
  return out;
}

Value split(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  const std::string* separator = text_argument(arguments, 0, "sep");
  const std::int64_t maximum = integer_argument(arguments, 1, "maxsplit", -1);
  runtime.charge(text.size() / 16);
  if (!separator) return split_at_spaces(text, maximum);
  if (separator->empty()) raise("empty separator");
  return split_at(text, *separator, maximum);
}

Value rsplit(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  const std::string* separator = text_argument(arguments, 0, "sep");
  const std::int64_t maximum = integer_argument(arguments, 1, "maxsplit", -1);
  runtime.charge(text.size() / 16);
  if (!separator) return rsplit_at_spaces(text, maximum);
  if (separator->empty()) raise("empty separator");
  // Backwards, so that each search continues where the last one ended.
  const auto backwards = [](const std::string& given) {
    return std::string(given.rbegin(), given.rend());
  };
  List out = split_at(backwards(text), backwards(*separator), maximum);
  for (Value& item : out.items) item = backwards(item.string());
  std::reverse(out.items.begin(), out.items.end());
  return out;
}

Value splitlines(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  const Value* keep = arguments.find(0, "keepends");
  List out;
  for_each_line(text, keep && keep->truth(),
                [&](std::string_view line) { out.items.emplace_back(line); });
  runtime.reserve_items(out.items.size());
  return out;
}

Value replace(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  return replace_text(runtime, text, needed_text(arguments, 0, "old"),
                      needed_text(arguments, 1, "new"),
                      integer_argument(arguments, 2, "count", -1));
}

Value join(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  std::string out;
  bool first = true;
  for (const Value& item : runtime.items_of(arguments.positional[0])) {
    const std::string& part = to_text(item, "each item to join");
    runtime.grow(out.size(), text.size() + part.size());
    if (!std::exchange(first, false)) out += text;
    out += part;
  }
  return out;
}

Value partition(const std::string& text, const Arguments& arguments, bool last) {
  const std::string& separator = needed_text(arguments, 0, "sep");
  if (separator.empty()) raise("empty separator");
  const auto at = last ? rfind_text(text, separator) : find_text(text, separator);
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
Value justify(Runtime& runtime, const std::string& text, const Arguments& arguments, Side side) {
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  const std::int64_t width = integer_argument(arguments, 0, "width", 0);
  const std::int64_t missing = width > size ? width - size : 0;
  const std::string* fill = text_argument(arguments, 1, "fillchar");
  const std::string filler = fill ? *fill : " ";
  if (count_code_points(filler) != 1)
    raise("The fill character must be exactly one character long");
  constexpr std::int64_t more_than_any = std::int64_t{1} << 50;
  runtime.reserve(text.size() +
                  static_cast<std::size_t>(std::min(missing, more_than_any)) * filler.size());
  // Python's str.center puts the extra character left if the width is odd, else right.
  const std::int64_t left = side == Side::left    ? missing
                            : side == Side::right ? 0
                                                  : missing / 2 + (missing & (missing + size) & 1);
  std::string out;
  for (std::int64_t i = 0; i < left; ++i) out += filler;
  out += text;
  for (std::int64_t i = left; i < missing; ++i) out += filler;
  return out;
}

Value zfill(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const std::int64_t width = integer_argument(arguments, 0, "width", 0),
                     size = static_cast<std::int64_t>(count_code_points(text));
  if (width <= size) return text;
  const std::int64_t missing = width - size;
  runtime.reserve(static_cast<std::size_t>(missing));
  runtime.reserve(text.size() + static_cast<std::size_t>(missing));
  return text.substr(0, sign) + std::string(static_cast<std::size_t>(missing), '0') +
         text.substr(sign);
}

Value expand_tabs(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  const std::int64_t size =
      std::clamp<std::int64_t>(integer_argument(arguments, 0, "tabsize", 8), 0, 1000);
  std::string out;
  std::int64_t column = 0;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const char c = text[at];
    const std::int64_t spaces = c == '\t' && size ? size - column % size : 0;
    runtime.grow(out.size(), static_cast<std::size_t>(spaces));
    out.append(static_cast<std::size_t>(spaces), ' ');
    if (c != '\t') out.append(text, at, utf8_length(c));
    column = c == '\n' || c == '\r' ? 0 : column + (c == '\t' ? spaces : 1);
  }
  runtime.reserve(out.size());
  return out;
}

Value strip(const std::string& text, const Arguments& arguments, bool left, bool right) {
  return strip_text(text, text_argument(arguments, 0, "chars"), left, right);
}

Value without(const std::string& text, const Arguments& arguments, bool at_end) {
  const std::string& part = needed_text(arguments, 0, "prefix");
  if (at_end) return text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text;
  return text.starts_with(part) ? text.substr(part.size()) : text;
}

using M = Runtime;
using S = std::string;
using A = Arguments;

using MethodTable = std::map<std::string_view, Method>;

const MethodTable& splitting_methods() {
  static const MethodTable table = {
      {"split", {split, "sep? maxsplit?", true}},
      {"rsplit", {rsplit, "sep? maxsplit?", true}},
      {"splitlines", {splitlines, "keepends?", true}},
      {"partition",
       {[](M&, const S& s, const A& a) { return partition(s, a, false); }, "/ sep", true}},
      {"rpartition",
       {[](M&, const S& s, const A& a) { return partition(s, a, true); }, "/ sep", true}},
      {"replace", {replace, "/ old new count?", true}},
      {"join", {join, "/ iterable", true}},
  };
  return table;
}

const MethodTable& case_methods() {
  static const MethodTable table = {
      {"upper", {[](M&, const S& s, const A&) -> Value { return upper(s); }, "", true}},
      {"lower", {[](M&, const S& s, const A&) -> Value { return lower(s); }, "", true}},
      {"casefold", {[](M&, const S& s, const A&) -> Value { return case_fold(s); }, "", true}},
      {"title", {[](M&, const S& s, const A&) -> Value { return title(s); }, "", true}},
      {"capitalize", {[](M&, const S& s, const A&) -> Value { return capitalize(s); }, "", true}},
      {"swapcase", {[](M&, const S& s, const A&) -> Value { return swap_case(s); }, "", true}},
  };
  return table;
}

// Methods that remove or add characters at the ends, and expandtabs.
const MethodTable& padding_methods() {
  static const MethodTable table = {
      {"strip",
       {[](M&, const S& s, const A& a) { return strip(s, a, true, true); }, "/ chars?", true}},
      {"lstrip",
       {[](M&, const S& s, const A& a) { return strip(s, a, true, false); }, "/ chars?", true}},
      {"rstrip",
       {[](M&, const S& s, const A& a) { return strip(s, a, false, true); }, "/ chars?", true}},
      {"removeprefix",
       {[](M&, const S& s, const A& a) { return without(s, a, false); }, "/ prefix", true}},
      {"removesuffix",
       {[](M&, const S& s, const A& a) { return without(s, a, true); }, "/ suffix", true}},
      {"center",
       {[](M& m, const S& s, const A& a) { return justify(m, s, a, Side::both); },
        "/ width fillchar?", true}},
      {"ljust",
       {[](M& m, const S& s, const A& a) { return justify(m, s, a, Side::right); },
        "/ width fillchar?", true}},
      {"rjust",
       {[](M& m, const S& s, const A& a) { return justify(m, s, a, Side::left); },
        "/ width fillchar?", true}},
      {"zfill", {zfill, "/ width", true}},
      {"expandtabs", {expand_tabs, "tabsize?", true}},
  };
  return table;
}

// Escapes the arguments of a method of markup.
Arguments escaped(const Arguments& arguments) {
  Arguments out = arguments;
  for (Value& value : out.positional) {
    if (value.is(Value::Type::string) && !value.is_markup()) value = escape_html(value.string());
    if (!value.is(Value::Type::list) || !value.list().is_plain()) continue;
    List list = value.list();
    for (Value& item : list.items)
      if (item.is(Value::Type::string) && !item.is_markup()) item = escape_html(item.string());
    value = std::move(list);
  }
  return out;
}

Value as_markup(const Value& value) {
  if (value.is(Value::Type::string)) return Value::markup(value.string());
  List list = value.list();
  for (Value& item : list.items) item = as_markup(item);
  return list;
}

Value call(Runtime& runtime, const Value& text, std::string_view name, const Method& method,
           const Arguments& arguments) {
  check_arguments(name, method.parameters, arguments);
  runtime.charge(text.string().size() / 8);
  if (!text.is_markup() || !method.stays_escaped)
    return method.body(runtime, text.string(), arguments);
  const bool takes = name == "replace" || name == "join";
  return as_markup(method.body(runtime, text.string(), takes ? escaped(arguments) : arguments));
}

}  // namespace

std::vector<std::string_view> string_method_names() {
  std::vector<std::string_view> out = {"format", "format_map"};
  for (const auto* table :
       {&string_questions(), &splitting_methods(), &case_methods(), &padding_methods()})
    for (const auto& [name, method] : *table) out.push_back(name);
  return out;
}

std::optional<Value> string_method(const Value& text, std::string_view name) {
  if (name == "format")
    return make_function("method", [text](Runtime& runtime, Arguments& arguments) {
      runtime.charge_text(text);
      return format_braces(runtime, text, arguments);
    });
  if (name == "format_map")
    return make_function("method", [text](Runtime& runtime, Arguments& arguments) {
      check_arguments("format_map", "/ map", arguments);
      const Value& map = arguments.positional[0];
      if (!map.is(Value::Type::dict)) raise("format_map needs a mapping");
      Arguments named;
      runtime.charge_text(text);
      runtime.charge(map.dict().items.size());
      for (const auto& [key, value] : map.dict().items)
        if (key.is(Value::Type::string)) named.keyword.emplace_back(key.string(), value);
      return format_braces(runtime, text, named);
    });
  for (const auto* table :
       {&string_questions(), &splitting_methods(), &case_methods(), &padding_methods()}) {
    const auto found = table->find(name);
    if (found == table->end()) continue;
    return make_function("method", [text, known = found->first, method = found->second](
                                       Runtime& runtime, Arguments& arguments) {
      return call(runtime, text, known, method, arguments);
    });
  }
  return std::nullopt;
}

}  // namespace troupe::engine::jinja
