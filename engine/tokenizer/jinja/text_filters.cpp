// Filters of texts.
#include <algorithm>
#include <cctype>
#include <map>

#include "engine/base/text.h"
#include "engine/tokenizer/jinja/case.h"
#include "engine/tokenizer/jinja/machine.h"
#include "engine/tokenizer/utf8.h"

namespace troupe::engine::tokenizer::jinja {
namespace {

using Type = Value::Type;

std::int64_t integer_argument(const Arguments& arguments, std::size_t index, std::string_view name, std::int64_t otherwise) {
  const Value* given = arguments.find(index, name);
  return given && !given->is(Type::none) ? to_integer(*given, name) : otherwise;
}

Value trim(Machine& machine, const Value& value, Arguments& arguments) {
  const Value* which = arguments.find(0, "chars");
  return strip_text(machine.text(value), which && !which->is(Type::none) ? &to_text(*which, "chars") : nullptr, true, true);
}

Value replace(Machine& machine, const Value& value, Arguments& arguments) {
  const Value *old = arguments.find(0, "old"), *with = arguments.find(1, "new");
  if (!old || !with) raise("replace needs what to replace and with what");
  return replace_text(machine, machine.text(value), machine.text(*old), machine.text(*with), integer_argument(arguments, 2, "count", -1));
}

Value center(Machine& machine, const Value& value, Arguments& arguments) {
  const Value text = machine.text(value);
  Arguments width;
  width.positional.emplace_back(integer_argument(arguments, 0, "width", 80));
  return machine.call(*string_method(text, "center"), width);
}

Value indent(Machine& machine, const Value& value, Arguments& arguments) {
  const Value* width = arguments.find(0, "width");
  const Value *first = arguments.find(1, "first"), *blank = arguments.find(2, "blank");
  const std::string pad =
      width && width->is(Type::string)
          ? width->string()
          : std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(integer_argument(arguments, 0, "width", 4), 0, 1000)), ' ');
  const std::string text = to_text(value, "what is indented");
  machine.reserve(text.size() + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n') + 1) * pad.size());
  std::string out;
  for (std::size_t at = 0, line = 0; at <= text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const bool wanted = line == 0 ? first && first->truth() : (end > at || (blank && blank->truth()));
    if (line) out += '\n';
    if (wanted) out += pad;
    out.append(text, at, end - at);
    at = end + 1;
  }
  return out;
}

Value truncate(Machine& machine, const Value& value, Arguments& arguments) {
  if (value.is_number() || value.is(Type::none)) raise(cat("object of type '", value.type_name(), "' has no len()"));
  if (value.is(Type::list) || value.is(Type::dict)) return value;
  const std::string text = machine.text(value);
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(integer_argument(arguments, 0, "length", 255), 0));
  const Value *kill = arguments.find(1, "killwords"), *end_given = arguments.find(2, "end");
  const std::string end = end_given ? machine.text(*end_given) : "...";
  const std::int64_t leeway = integer_argument(arguments, 3, "leeway", 5);
  if (count_code_points(text) <= length + static_cast<std::size_t>(std::max<std::int64_t>(leeway, 0))) return text;
  if (length < count_code_points(end)) raise("truncate: the length is smaller than the end");
  std::size_t at = 0;
  for (std::size_t i = 0; i < length - count_code_points(end); ++i) at += utf8_length(text[at]);
  std::string out = text.substr(0, at);
  if (!(kill && kill->truth())) out.resize(std::min(out.rfind(' '), out.size()));
  return out + end;
}

Value escape(Machine& machine, const Value& value, Arguments&) {
  std::string out;
  for (const char c : machine.text(value)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  machine.reserve(out.size());
  return out;
}

Value url_encode(Machine& machine, const Value& value, Arguments&) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : machine.text(value)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 0x80 && std::isalnum(byte)) || c == '_' || c == '.' || c == '-' || c == '~' || c == '/';
    if (plain)
      out += c;
    else
      out += '%', out += digits[byte >> 4], out += digits[byte & 15];
  }
  machine.reserve(out.size());
  return out;
}

Value word_count(Machine& machine, const Value& value, Arguments&) {
  const std::string text = machine.text(value);
  std::size_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const bool word = is_word(code_point_at(text, at).value);
    count += word && !std::exchange(inside, word);
    inside = word;
  }
  return count;
}

Value format(Machine& machine, const Value& value, Arguments& arguments) {
  if (!arguments.keyword.empty()) {
    Dict named;
    for (auto& [name, item] : arguments.keyword) named.set(name, item);
    return format_percent(machine, machine.text(value), named);
  }
  List list;
  list.kind = List::Kind::tuple;
  list.items = arguments.positional;
  return format_percent(machine, machine.text(value), list);
}

// jinja2's title: words start after white space, hyphens and brackets.
Value title_filter(Machine& machine, const Value& value, Arguments&) {
  const std::string text = machine.text(value);
  std::string out, word;
  const auto flush = [&] { out += capitalize(std::exchange(word, {})); };
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const CodePoint point = code_point_at(text, at);
    const bool between = is_whitespace(point.value) || std::u32string_view(U"-({[<").find(point.value) != std::u32string_view::npos;
    if (between)
      flush(), out.append(text, at, point.size);
    else
      word.append(text, at, point.size);
  }
  flush();
  return out;
}

const std::map<std::string_view, FilterBody>& table() {
  using M = Machine;
  using V = Value;
  using A = Arguments;
  static const std::map<std::string_view, FilterBody> filters = {
      {"upper", [](M& m, const V& v, A&) -> V { return upper(m.text(v)); }},
      {"lower", [](M& m, const V& v, A&) -> V { return lower(m.text(v)); }},
      {"capitalize", [](M& m, const V& v, A&) -> V { return capitalize(m.text(v)); }},
      {"title", title_filter},
      {"trim", trim},
      {"replace", replace},
      {"center", center},
      {"indent", indent},
      {"truncate", truncate},
      {"escape", escape},
      {"e", escape},
      {"forceescape", escape},
      {"safe", [](M& m, const V& v, A&) -> V { return m.text(v); }},
      {"string", [](M& m, const V& v, A&) -> V { return m.text(v); }},
      {"urlencode", url_encode},
      {"wordcount", word_count},
      {"format", format},
  };
  return filters;
}

}  // namespace

FilterBody find_text_filter(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace troupe::engine::tokenizer::jinja
