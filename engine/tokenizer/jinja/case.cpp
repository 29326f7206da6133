#include "engine/tokenizer/jinja/case.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstdio>

#include "engine/base/text.h"
#include "engine/tokenizer/utf8.h"

namespace troupe::engine::tokenizer::jinja {
namespace {

// Each character becomes what `map(c, at_word_start)` appends.
template <class Map>
std::string map_characters(const std::string& text, Map map) {
  std::string out;
  out.reserve(text.size());
  bool start = true;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    map(out, static_cast<UChar32>(point.value), start);
    start = !u_isalpha(static_cast<UChar32>(point.value));
    at += point.size;
  }
  return out;
}

void append_upper(std::string& out, UChar32 c) { c == 0xDF ? void(out += "SS") : append_utf8(out, static_cast<char32_t>(u_toupper(c))); }
void append_lower(std::string& out, UChar32 c) { append_utf8(out, static_cast<char32_t>(u_tolower(c))); }

}  // namespace

std::string upper(const std::string& text) {
  return map_characters(text, [](std::string& out, UChar32 c, bool) { append_upper(out, c); });
}
std::string lower(const std::string& text) {
  return map_characters(text, [](std::string& out, UChar32 c, bool) { append_lower(out, c); });
}
std::string title(const std::string& text) {
  return map_characters(text, [](std::string& out, UChar32 c, bool start) {
    start ? append_utf8(out, static_cast<char32_t>(u_totitle(c))) : append_lower(out, c);
  });
}
std::string capitalize(const std::string& text) {
  bool first = true;
  return map_characters(text, [&](std::string& out, UChar32 c, bool) {
    std::exchange(first, false) ? append_utf8(out, static_cast<char32_t>(u_totitle(c))) : append_lower(out, c);
  });
}
std::string swap_case(const std::string& text) {
  return map_characters(text, [](std::string& out, UChar32 c, bool) { u_isupper(c) ? append_lower(out, c) : append_upper(out, c); });
}

std::string strip_text(const std::string& text, const std::string* which, bool left, bool right) {
  const auto strips = [&](std::size_t at) {
    const CodePoint point = code_point_at(text, at);
    if (!which) return is_whitespace(point.value) || (point.value >= 0x1C && point.value <= 0x1F);
    return which->find(text.substr(at, point.size)) != std::string::npos;
  };
  std::size_t begin = 0, end = text.size();
  while (left && begin < end && strips(begin)) begin += utf8_length(text[begin]);
  while (right && begin < end) {
    std::size_t last = end - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!strips(last)) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

Value replace_text(Machine& machine, const std::string& text, const std::string& old, const std::string& with, std::int64_t most) {
  std::string out;
  const auto room = [&](std::size_t more) { machine.reserve(out.size() + more > (1u << 20) ? out.size() + more : more); };
  std::size_t from = 0;
  if (old.empty()) {
    for (; from <= text.size() && most-- != 0;) {
      const std::size_t size = from < text.size() ? utf8_length(text[from]) : 0;
      room(with.size() + size);
      out.append(with).append(text, from, size);
      from += std::max<std::size_t>(size, 1);
    }
    return out + (from < text.size() ? text.substr(from) : "");
  }
  for (std::size_t at; most-- != 0 && (at = text.find(old, from)) != std::string::npos; from = at + old.size()) {
    room(with.size() + at - from);
    out.append(text, from, at - from).append(with);
  }
  return out.append(text, from);
}

bool every(const std::string& text, CharacterClass wanted) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const auto c = static_cast<UChar32>(point.value);
    const bool letter = u_isalpha(c), number = is_numeric(point.value);
    const bool ok = wanted == CharacterClass::digit     ? u_isdigit(c) != 0
                    : wanted == CharacterClass::numeric ? number
                    : wanted == CharacterClass::letter  ? letter
                    : wanted == CharacterClass::space   ? is_whitespace(point.value)
                                                        : letter || number;
    if (!ok) return false;
    at += point.size;
  }
  return !text.empty();
}

namespace {

// One conversion of a %-format, with its flags ("%-5.2f").
std::string convert(Machine& machine, const std::string& spec, char kind, const Value& value) {
  char buffer[512];
  int size = 0;
  if (kind == 's' || kind == 'r') {
    const std::string text = kind == 's' ? machine.text(value) : (machine.weigh(value), to_repr(value));
    if (spec == "%") return text;
    int width = 0;
    const bool left = spec.find('-') != std::string::npos;
    const auto digits = spec.find_first_of("123456789");
    if (digits != std::string::npos) width = std::atoi(spec.c_str() + digits);
    if (width > 400 || spec.find('.') != std::string::npos) raise("a format that is not supported");
    size = static_cast<int>(count_code_points(text));
    const std::string fill(static_cast<std::size_t>(std::max(0, width - size)), ' ');
    return left ? text + fill : fill + text;
  }
  if (!value.is_number()) raise(cat("%", kind, " format: a number is required, not ", value.type_name()));
  if (kind == 'd' || kind == 'i' || kind == 'x' || kind == 'X' || kind == 'o') {
    const long long integer = value.is(Value::Type::real) ? static_cast<long long>(value.real()) : static_cast<long long>(value.integer());
    size = std::snprintf(buffer, sizeof buffer, (spec + "ll" + (kind == 'i' ? 'd' : kind)).c_str(), integer);
  } else {
    size = std::snprintf(buffer, sizeof buffer, (spec + kind).c_str(), value.real());
  }
  if (size < 0 || size >= static_cast<int>(sizeof buffer)) raise("a number too wide for its format");
  return buffer;
}

}  // namespace

std::string format_percent(Machine& machine, const std::string& format, const Value& values) {
  const bool tuple = values.is(Value::Type::list) && values.list().kind == List::Kind::tuple;
  std::size_t used = 0;
  const auto next = [&]() -> const Value& {
    if (tuple ? used >= values.list().items.size() : used > 0) raise("not enough arguments for format string");
    return tuple ? values.list().items[used++] : (++used, values);
  };
  std::string out;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    const Value* named = nullptr;
    if (format.compare(at + 1, 1, "(") == 0) {
      const auto end = format.find(')', at);
      if (end == std::string::npos || !values.is(Value::Type::dict)) raise("format requires a mapping");
      named = values.dict().find_text(std::string_view(format).substr(at + 2, end - at - 2));
      if (!named) raise("a key of the format is missing");
      at = end;
    }
    std::string spec = "%";
    while (++at < format.size() && std::string_view("-+ #0123456789.").find(format[at]) != std::string_view::npos) spec += format[at];
    if (at >= format.size()) raise("incomplete format");
    if (spec.size() > 8) raise("a format that is not supported");
    const char kind = format[at];
    if (kind == '%') {
      out += '%';
    } else if (std::string_view("srdixXofFeEgG").find(kind) != std::string_view::npos) {
      out += convert(machine, spec, kind, named ? *named : next());
    } else {
      raise(cat("unsupported format character '", kind, "'"));
    }
    machine.reserve(out.size());
  }
  if (tuple && used < values.list().items.size()) raise("not all arguments converted during string formatting");
  if (!tuple && used == 0 && !values.is(Value::Type::dict) && !values.is(Value::Type::list))
    raise("not all arguments converted during string formatting");
  return out;
}

Value format_braces(Machine& machine, const std::string& format, const Arguments& arguments) {
  std::string out;
  std::size_t order = 0;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if ((c == '{' || c == '}') && at + 1 < format.size() && format[at + 1] == c) {
      out += c, ++at;
      continue;
    }
    if (c == '}') raise("Single '}' encountered in format string");
    if (c != '{') {
      out += c;
      continue;
    }
    const auto end = format.find('}', at);
    if (end == std::string::npos) raise("Single '{' encountered in format string");
    const std::string field = format.substr(at + 1, end - at - 1);
    at = end;
    const auto colon = field.find(':');
    const std::string place = field.substr(0, colon), spec = colon == std::string::npos ? "" : field.substr(colon + 1);
    const bool number = !place.empty() && place.find_first_not_of("0123456789") == std::string::npos && place.size() < 6;
    const std::size_t index = place.empty() ? order++ : number ? static_cast<std::size_t>(std::stoi(place)) : arguments.positional.size();
    const Value* value = arguments.find(index, place);
    if (!value) raise(cat("no argument for the place ", quote(field), " of the format"));
    const bool plain = spec.empty() || (spec.size() < 6 && spec.find_first_not_of("0123456789.dfs") == std::string::npos);
    if (!plain) raise(cat("the format ", quote(spec), " is not supported"));
    if (spec.empty())
      out += machine.text(*value);
    else if (spec.back() == 's')
      out += machine.text(*value);
    else
      out += convert(machine, "%" + spec.substr(0, spec.size() - (spec.back() == 'd' || spec.back() == 'f')),
                     spec.back() == 'f' ? 'f' : 'd', *value);
    machine.reserve(out.size());
  }
  return out;
}

}  // namespace troupe::engine::tokenizer::jinja
