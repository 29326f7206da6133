#include "engine/jinja/filters.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/container_methods.h"
#include "engine/jinja/format.h"
#include "engine/jinja/format_percent.h"
#include "engine/jinja/operators.h"
#include "engine/jinja/repr.h"
#include "engine/jinja/runtime.h"
#include "engine/jinja/string_methods.h"

namespace troupe::engine::jinja {

namespace {

using Type = Value::Type;

std::int64_t optional_integer(const Arguments& arguments, std::size_t index, std::string_view name,
                              std::int64_t otherwise) {
  const Value* given = arguments.find(index, name);
  return given && !given->is(Type::none) ? to_integer(*given, name) : otherwise;
}

/// str(value); keeps markup.
Value soft(Runtime& runtime, const Value& value) {
  return value.is(Type::string) ? value : Value(runtime.text(value));
}
Value like(const Value& model, std::string text) {
  return model.is_markup() ? Value::markup(std::move(text)) : Value(std::move(text));
}

// The method of the same name of str(value).
template <const char* Name>
Value method(Runtime& runtime, const Value& value, Arguments& arguments) {
  return runtime.call(*string_method(soft(runtime, value), Name), arguments);
}
constexpr char upper_name[] = "upper", lower_name[] = "lower", capitalize_name[] = "capitalize";

Value trim(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value text = soft(runtime, value);
  const Value* which = arguments.find(0, "chars");
  return like(
      text, strip_text(text.string(),
                       which && !which->is(Type::none) ? &to_text(*which, "chars") : nullptr, true,
                       true));
}

Value replace_filter(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value *old = arguments.find(0, "old"), *with = arguments.find(1, "new");
  return replace_text(runtime, runtime.text(value), runtime.text(*old), runtime.text(*with),
                      optional_integer(arguments, 2, "count", -1));
}

Value center(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value text = soft(runtime, value);
  Arguments width;
  width.positional.emplace_back(optional_integer(arguments, 0, "width", 80));
  return runtime.call(*string_method(text, "center"), width);
}

Value indent(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value* width = arguments.find(0, "width");
  const Value *first = arguments.find(1, "first"), *blank = arguments.find(2, "blank");
  const bool own = width && width->is(Type::string);
  const auto spaces = own ? std::size_t{0}
                          : static_cast<std::size_t>(std::max<std::int64_t>(
                                optional_integer(arguments, 0, "width", 4), 0));
  runtime.reserve(spaces);
  const std::string pad = own ? width->string() : std::string(spaces, ' ');
  const std::string text = to_text(value, "what is indented");
  std::string out = first && first->truth() ? pad : "";
  bool begins = true;
  for_each_line(text + "\n", false, [&](std::string_view line) {
    runtime.grow(out.size(), line.size() + pad.size() + 1);
    if (!begins) out += '\n';
    if (!begins && (!line.empty() || (blank && blank->truth()))) out += pad;
    begins = false;
    out += line;
  });
  return like(value, std::move(out));
}

Value truncate(Runtime& runtime, const Value& value, Arguments& arguments) {
  Arguments none;
  const auto size = static_cast<std::size_t>(runtime.filter("length", value, none).integer());
  const std::int64_t length = optional_integer(arguments, 0, "length", 255),
                     leeway = optional_integer(arguments, 3, "leeway", 5);
  const Value *kill = arguments.find(1, "killwords"), *end_given = arguments.find(2, "end");
  const std::string end = end_given ? to_text(*end_given, "end") : "...";
  const auto end_size = static_cast<std::int64_t>(count_code_points(end));
  if (length < end_size) raise(cat("expected length >= ", end_size, ", got ", length));
  if (leeway < 0) raise(cat("expected leeway >= 0, got ", leeway));
  if (static_cast<std::int64_t>(size) - length <= leeway) return value;
  const std::string text = to_text(value, "what is truncated");
  std::size_t at = 0;
  for (std::int64_t i = 0; i < length - end_size; ++i) at += utf8_length(text[at]);
  std::string out = text.substr(0, at);
  if (!(kill && kill->truth())) out.resize(std::min(out.rfind(' '), out.size()));
  const bool escapes = value.is_markup() && !(end_given && end_given->is_markup());
  return like(value, out + (escapes ? escape_html(end) : end));
}

Value word_count(Runtime& runtime, const Value& value, Arguments&) {
  const std::string text = runtime.text(value);
  work(16 * text.size());
  std::size_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const bool word = text[at] == '_' || every(text.substr(at, utf8_length(text[at])),
                                               CharacterClass::letter_or_number);
    count += word && !std::exchange(inside, word);
    inside = word;
  }
  return count;
}

Value format(Runtime& runtime, const Value& value, Arguments& arguments) {
  if (!arguments.keyword.empty() && !arguments.positional.empty())
    raise("can't handle positional and keyword arguments at the same time");
  const Value text = soft(runtime, value);
  if (!arguments.keyword.empty()) {
    Dict named;
    for (auto& [name, item] : arguments.keyword) named.set(name, item);
    return format_percent(runtime, text, named);
  }
  List list;
  list.kind = List::Kind::tuple;
  list.items = arguments.positional;
  return format_percent(runtime, text, list);
}

// jinja2's filesizeformat: 1 Byte, 999 Bytes, 1.0 kB, 1.0 MiB.
Value file_size(Runtime& runtime, const Value& value, Arguments& arguments) {
  Arguments otherwise;
  otherwise.positional.emplace_back();
  const Value size = runtime.filter("float", value, otherwise);
  if (!size.is(Type::real)) raise(cat("a size must be a number, not ", to_repr(value)));
  const double bytes = size.real();
  const Value* binary = arguments.find(0, "binary");
  const bool by_1024 = binary && binary->truth();
  const double base = by_1024 ? 1024 : 1000;
  if (bytes == 1) return "1 Byte";
  if (bytes < base) return cat(whole_number(bytes), " Bytes");
  constexpr std::string_view prefixes = "kMGTPEZY";
  double unit = base;
  std::size_t i = 0;
  for (; i + 1 < prefixes.size() && bytes >= unit * base; ++i) unit *= base;
  FieldStyle style;
  style.kind = 'f';
  style.precision = 1;
  const std::string prefix = by_1024 ? cat(i ? prefixes[i] : 'K', "iB") : cat(prefixes[i], "B");
  return cat(format_real(runtime, style, bytes / unit), " ", prefix);
}

// jinja2's title: words start after white space, hyphens and brackets.
Value title_filter(Runtime& runtime, const Value& value, Arguments&) {
  const std::string text = runtime.text(value);
  work(16 * text.size());
  std::string out;
  std::size_t begin = 0;
  const auto flush = [&](std::size_t end) {
    if (end == begin) return;
    const std::size_t first = utf8_length(text[begin]);
    out +=
        upper(text.substr(begin, first)) + lower(text.substr(begin + first, end - begin - first));
  };
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const bool between =
        is_python_space(point.value) ||
        std::u32string_view(U"-({[<").find(point.value) != std::u32string_view::npos;
    if (between) {
      flush(at);
      out.append(text, at, point.size);
      begin = at + point.size;
    }
    at += point.size;
  }
  flush(text.size());
  return out;
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable filters = {
      {"upper", {method<upper_name>, ""}},
      {"lower", {method<lower_name>, ""}},
      {"capitalize", {method<capitalize_name>, ""}},
      {"title", {title_filter, ""}},
      {"trim", {trim, "chars?"}},
      {"replace", {replace_filter, "old new count?"}},
      {"center", {center, "width?"}},
      {"indent", {indent, "width? first? blank?"}},
      {"truncate", {truncate, "length? killwords? end? leeway?"}},
      {"string", {[](Runtime& m, const Value& v, Arguments&) { return soft(m, v); }, ""}},
      {"wordcount", {word_count, ""}},
      {"format", {format, "*"}},
      {"filesizeformat", {file_size, "binary?"}},
  };
  return filters;
}

namespace {

Value escape_filter(Runtime& runtime, const Value& value, Arguments&) {
  return value.is_markup() ? value : Value::markup(escape_html(runtime.text(value)));
}
Value force_escape(Runtime& runtime, const Value& value, Arguments&) {
  return Value::markup(escape_html(runtime.text(value)));
}

std::string url_quote(Runtime& runtime, const Value& value, bool form) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  const std::string text = runtime.text(value);
  work(8 * text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 0x80 && std::isalnum(byte)) || c == '_' || c == '.' || c == '-' ||
                       c == '~' || (c == '/' && !form);
    if (plain)
      out += c;
    else if (c == ' ' && form)
      out += '+';
    else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  runtime.reserve(out.size());
  return out;
}

// Encodes a text, or pairs as the fields of a form.
Value url_encode(Runtime& runtime, const Value& value, Arguments&) {
  const bool pairs = value.is(Type::dict) || value.is(Type::list) || value.is(Type::undefined);
  if (!pairs) return url_quote(runtime, value, false);
  Arguments none;
  std::string out;
  for (const Value& item : runtime.items_of(
           value.is(Type::dict) ? runtime.call(*dict_method(value, "items"), none) : value)) {
    const auto pair = runtime.items_of(item);
    if (pair.size() != 2) raise("urlencode needs pairs of a name and a value");
    out += cat(out.empty() ? "" : "&", url_quote(runtime, pair[0], true), "=",
               url_quote(runtime, pair[1], true));
    runtime.grow(out.size(), 0);
  }
  return out;
}

Value attributes(Runtime& runtime, const Value& value, Arguments& arguments) {
  if (!value.is(Type::dict)) raise(cat("xmlattr needs a mapping, not ", value.type_name()));
  std::string out;
  for (const auto& [key, item] : value.dict().items) {
    if (item.is(Type::none) || item.is(Type::undefined)) continue;
    const std::string& name = to_text(key, "an attribute's name");
    for (std::size_t at = 0; at < name.size(); at += utf8_length(name[at]))
      if (is_python_space(code_point_at(name, at).value) ||
          std::string_view("/>=").find(name[at]) != std::string_view::npos)
        raise(cat("Invalid character in attribute name: ", to_repr(key)));
    const std::string text = runtime.text(item);
    out += cat(out.empty() ? "" : " ", escape_html(name), "=\"",
               item.is_markup() ? text : escape_html(text), "\"");
    runtime.grow(out.size(), text.size());
  }
  const Value* space = arguments.find(0, "autospace");
  return out.empty() || (space && !space->truth()) ? out : " " + out;
}

void cut_out(std::string& text, std::string_view begin, std::string_view end) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(begin, from)) != std::string::npos;) {
    const auto stop = text.find(end, at);
    if (stop == std::string::npos) break;
    out.append(text, from, at - from);
    from = stop + end.size();
  }
  text = out.append(text, from);
}

// Replaces the five named entities of XML, and numeric ones.
std::string unescape(const std::string& text) {
  static const std::map<std::string_view, std::string_view> names = {
      {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text[at] == '&' ? text.find(';', at) : std::string::npos;
    if (end == std::string::npos || end - at > 10) {
      out += text[at++];
      continue;
    }
    const std::string name = text.substr(at + 1, end - at - 1);
    const auto known = names.find(name);
    const bool number = name.size() > 1 && name[0] == '#' &&
                        name.find_first_not_of("0123456789", 1) == std::string::npos;
    const long value = number ? std::stol(name.substr(1)) : 0;
    if (known != names.end())
      out += known->second;
    else if (value > 0 && value <= 0x10FFFF && !(value >= 0xD800 && value < 0xE000))
      append_utf8(out, static_cast<char32_t>(value));
    else
      out.append(text, at, end + 1 - at);
    at = end + 1;
  }
  return out;
}

Value strip_tags(Runtime& runtime, const Value& value, Arguments&) {
  std::string text = runtime.text(value);
  work(16 * text.size());
  cut_out(text, "<!--", "-->");
  cut_out(text, "<", ">");
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = utf8_length(text[at]);
    const bool space = is_python_space(code_point_at(text, at).value);
    if (space && !out.empty() && !out.ends_with(' ')) out += ' ';
    if (!space) out.append(text, at, size);
    at += size;
  }
  if (out.ends_with(' ')) out.pop_back();
  return unescape(out);
}

}  // namespace

const FilterTable& html_filters() {
  static const FilterTable filters = {
      {"escape", {escape_filter, ""}},
      {"e", {escape_filter, ""}},
      {"forceescape", {force_escape, ""}},
      {"safe",
       {[](Runtime& m, const Value& v, Arguments&) { return Value::markup(m.text(v)); }, ""}},
      {"urlencode", {url_encode, ""}},
      {"xmlattr", {attributes, "autospace?"}},
      {"striptags", {strip_tags, ""}},
  };
  return filters;
}

}  // namespace troupe::engine::jinja
