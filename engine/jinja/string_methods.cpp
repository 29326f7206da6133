#include "engine/jinja/string_methods.h"

#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/format.h"
#include "engine/jinja/format_braces.h"
#include "engine/jinja/string_search.h"

namespace troupe::engine::jinja {
namespace {

Value split(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  const std::string* separator = text_argument(arguments, 0, "sep");
  std::int64_t maximum = integer_argument(arguments, 1, "maxsplit", -1);
  List out;
  runtime.charge(text.size() / 16);
  if (!separator) {
    std::size_t at = 0;
    const auto skip = [&](bool space) {
      while (at < text.size() && is_python_space(code_point_at(text, at).value) == space)
        at += utf8_length(text[at]);
    };
    for (skip(true); at < text.size(); skip(true)) {
      const std::size_t begin = at;
      if (maximum-- == 0) {
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
  for (std::size_t at; (at = text.find(*separator, from)) != std::string::npos && maximum-- != 0;
       from = at + separator->size())
    out.items.emplace_back(text.substr(from, at - from));
  out.items.emplace_back(text.substr(from));
  return out;
}

Value rsplit(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  const std::string* separator = text_argument(arguments, 0, "sep");
  std::int64_t maximum = integer_argument(arguments, 1, "maxsplit", -1);
  if (maximum < 0) return split(runtime, text, arguments);
  runtime.charge(text.size() / 16);
  List out;
  std::string rest = separator ? text : strip_text(text, nullptr, false, true);
  while (maximum-- > 0) {
    std::size_t at = std::string::npos, width = 0;
    if (separator) {
      if (separator->empty()) raise("empty separator");
      at = rest.rfind(*separator);
      width = separator->size();
    } else {
      for (std::size_t i = 0; i < rest.size(); i += utf8_length(rest[i]))
        if (is_python_space(code_point_at(rest, i).value)) {
          at = i;
          width = utf8_length(rest[i]);
        }
    }
    if (at == std::string::npos) break;
    out.items.emplace_back(rest.substr(at + width));
    rest.resize(at);
    if (!separator) rest = strip_text(rest, nullptr, false, true);
    runtime.charge(1 + rest.size() / 64);
  }
  if (separator || !strip_text(rest, nullptr, true, false).empty())
    out.items.emplace_back(separator ? rest : strip_text(rest, nullptr, true, false));
  std::reverse(out.items.begin(), out.items.end());
  return out;
}

Value splitlines(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  const Value* keep = arguments.find(0, "keepends");
  List out;
  for (std::string& line : lines_of(text, keep && keep->truth()))
    out.items.emplace_back(std::move(line));
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
    runtime.reserve(out.size() + text.size() + part.size() > (1u << 20)
                        ? out.size() + text.size() + part.size()
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
Value justify(Runtime& runtime, const std::string& text, const Arguments& arguments, Side side) {
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  const std::int64_t missing =
      std::max<std::int64_t>(integer_argument(arguments, 0, "width", 0) - size, 0);
  const std::string* fill = text_argument(arguments, 1, "fillchar");
  const std::string filler = fill ? *fill : " ";
  if (count_code_points(filler) != 1)
    raise("The fill character must be exactly one character long");
  runtime.reserve(text.size() + static_cast<std::size_t>(missing) * filler.size());
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
  const std::int64_t missing = integer_argument(arguments, 0, "width", 0) -
                               static_cast<std::int64_t>(count_code_points(text));
  if (missing <= 0) return text;
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
    runtime.charge(static_cast<std::size_t>(spaces / 32));
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

std::optional<Value> string_method(const Value& text, std::string_view name) {
  if (name == "format")
    return make_function("method", [text](Runtime& runtime, Arguments& arguments) {
      return format_braces(runtime, text, arguments);
    });
  if (name == "format_map")
    return make_function("method", [text](Runtime& runtime, Arguments& arguments) {
      check_arguments("format_map", "/ map", arguments);
      const Value& map = arguments.positional[0];
      if (!map.is(Value::Type::dict)) raise("format_map needs a mapping");
      Arguments named;
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
