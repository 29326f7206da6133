#include "engine/jinja/filters/html_filters.h"

#include <cctype>
#include <map>

#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/container_methods.h"
#include "engine/jinja/repr.h"
#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {
namespace {

using Type = Value::Type;

Value escape_filter(Runtime& runtime, const Value& value, Arguments&) {
  return value.is_markup() ? value : Value::markup(escape_html(runtime.text(value)));
}
Value force_escape(Runtime& runtime, const Value& value, Arguments&) {
  return Value::markup(escape_html(runtime.text(value)));
}

std::string url_quote(Runtime& runtime, const Value& value, bool form) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : runtime.text(value)) {
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
    runtime.reserve(out.size() > (1u << 20) ? out.size() : 1);
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
    runtime.reserve(out.size() > (1u << 20) ? out.size() : 1);
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

const std::map<std::string_view, Filter>& html_filters() {
  static const std::map<std::string_view, Filter> filters = {
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

}  // namespace

const Filter* find_html_filter(std::string_view name) {
  const auto found = html_filters().find(name);
  return found == html_filters().end() ? nullptr : &found->second;
}

}  // namespace troupe::engine::jinja
