#include "engine/jinja/repr.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"

namespace troupe::engine::jinja {
namespace {

using Type = Value::Type;

std::string hex(char32_t value, int digits) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%0*x", digits, static_cast<unsigned>(value));
  return buffer;
}

std::string escaped(char32_t c) {
  return c < 0x100 ? "\\x" + hex(c, 2) : c < 0x10000 ? "\\u" + hex(c, 4) : "\\U" + hex(c, 8);
}

// The escape that Python and JSON share, or "".
std::string_view short_escape(char32_t c) {
  return c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : "";
}

std::string string_repr(const std::string& text) {
  work(8 * text.size());
  const char quote =
      text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const char32_t c = point.value;
    if (const auto escape = short_escape(c); !escape.empty())
      out += escape;
    else if (c == static_cast<unsigned char>(quote))
      out.append(1, '\\').append(1, quote);
    else if (is_printable(c))
      out.append(text, at, point.size);
    else
      out += escaped(c);
    at += point.size;
  }
  return out + quote;
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {
    item_ = style.item_separator.value_or(style.indent ? "," : ", ");
    key_ = style.key_separator.value_or(": ");
  }

  void write(const Value& value, int depth) {
    work(16);
    switch (value.type()) {
      case Type::none:
        out += "null";
        break;
      case Type::boolean:
        out += value.boolean() ? "true" : "false";
        break;
      case Type::integer:
        out += std::to_string(value.integer());
        break;
      case Type::real:
        out += real(value.real());
        break;
      case Type::string:
        write_string(value.string());
        break;
      case Type::list:
        if (!value.list().is_plain())
          raise(cat("Object of type ", value.type_name(), " is not JSON serializable"));
        write_list(value.list(), depth);
        break;
      case Type::dict:
        write_dict(value.dict(), depth);
        break;
      default:
        raise(cat("Object of type ", value.type_name(), " is not JSON serializable"));
    }
  }

  std::string out;

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return real_to_string(value);
  }
  void put(const std::string& text) {
    require_text(out.size() + text.size());
    work(text.size());
    out += text;
  }
  void newline(int depth) {
    if (!style_.indent) return;
    out += '\n';
    for (int i = 0; i < depth; ++i) put(*style_.indent);
  }
  void write_list(const List& list, int depth) {
    if (list.items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i) put(item_);
      newline(depth + 1);
      write(list.items[i], depth + 1);
    }
    newline(depth);
    out += ']';
  }
  static std::string key_text(const Value& key) {
    switch (key.type()) {
      case Value::Type::string:
        return key.string();
      case Value::Type::none:
        return "null";
      case Value::Type::boolean:
        return key.boolean() ? "true" : "false";
      case Value::Type::integer:
        return std::to_string(key.integer());
      case Value::Type::real:
        return real(key.real());
      default:
        raise(cat("keys must be str, int, float, bool or None, not ", key.type_name()));
    }
  }
  void write_dict(const Dict& dict, int depth) {
    if (dict.items.empty()) {
      out += "{}";
      return;
    }
    auto items = dict.items;
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    out += '{';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) put(item_);
      newline(depth + 1);
      write_string(key_text(items[i].first));
      put(key_);
      write(items[i].second, depth + 1);
    }
    newline(depth);
    out += '}';
  }
  void write_string(const std::string& text) {
    require_text(out.size() + text.size());
    work(8 * text.size());
    out += '"';
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      const char32_t c = point.value;
      if (const auto escape = short_escape(c); !escape.empty())
        out += escape;
      else if (c == '"')
        out += "\\\"";
      else if (c == '\b')
        out += "\\b";
      else if (c == '\f')
        out += "\\f";
      else if (c < 0x20)
        out += "\\u" + hex(c, 4);
      else if (style_.ascii && c >= 0x10000)
        out += "\\u" + hex(0xD800 + ((c - 0x10000) >> 10), 4) + "\\u" +
               hex(0xDC00 + ((c - 0x10000) & 0x3FF), 4);
      else if (style_.ascii && c >= 0x80)
        out += "\\u" + hex(c, 4);
      else
        out.append(text, at, point.size);
      at += point.size;
    }
    out += '"';
  }

  const JsonStyle& style_;
  std::string item_, key_;
};

}  // namespace

// Python's repr: the shortest digits that parse to the same value, with an exponent below 1e-4 and
// from 1e16 on.
std::string real_to_string(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const auto e = text.find('e');
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(text);
  char fixed[400];
  const auto fixed_end =
      std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed).ptr;
  std::string out(fixed, fixed_end);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string to_repr(const Value& value) {
  if (value.is(Value::Type::undefined)) return "Undefined";
  if (!value.is(Value::Type::string)) return to_string(value);
  return value.is_markup() ? cat("Markup(", string_repr(value.string()), ")")
                           : string_repr(value.string());
}

std::string to_ascii(const Value& value) {
  const std::string text = to_repr(value);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const char32_t c = code_point_at(text, at).value;
    out += c < 0x80 ? std::string(1, static_cast<char>(c)) : escaped(c);
  }
  return out;
}

namespace {

void append_item(std::string& out, std::string_view separator, const std::string& item) {
  work(16 + 2 * item.size());
  require_text(out.size() + separator.size() + item.size());
  out.append(separator).append(item);
}

std::string list_to_string(const List& list) {
  if (list.kind == List::Kind::generator) return "<generator object>";
  if (list.kind == List::Kind::range) {
    const auto& [start, stop, step] = list.range;
    return step == 1 ? cat("range(", start, ", ", stop, ")")
                     : cat("range(", start, ", ", stop, ", ", step, ")");
  }
  const bool tuple = list.kind == List::Kind::tuple, view = list.kind == List::Kind::view;
  std::string out = view ? cat(list.view, "([") : tuple ? "(" : "[";
  for (std::size_t i = 0; i < list.items.size(); ++i)
    append_item(out, i ? ", " : "", to_repr(list.items[i]));
  if (tuple && list.items.size() == 1) out += ',';
  return out + (view ? "])" : tuple ? ")" : "]");
}

}  // namespace

std::string to_string(const Dict& dict) {
  std::string out = "{";
  bool first = true;
  for (const auto& [key, item] : dict.items) {
    append_item(out, std::exchange(first, false) ? "" : ", ", to_repr(key));
    append_item(out, ": ", to_repr(item));
  }
  return out + "}";
}

std::string to_string(const Value& value) {
  switch (value.type()) {
    case Type::undefined:
      if (strict_template()) raise(value.reason());
      return "";
    case Type::none:
      return "None";
    case Type::boolean:
      return value.boolean() ? "True" : "False";
    case Type::integer:
      return std::to_string(value.integer());
    case Type::real:
      return real_to_string(value.real());
    case Type::string:
      return value.string();
    case Type::object:
      return value.object()->text();
    case Type::list:
      return list_to_string(value.list());
    case Type::dict:
      return to_string(value.dict());
  }
  return "";
}

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace troupe::engine::jinja
