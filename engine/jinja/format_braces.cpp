#include "engine/jinja/format_braces.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/format.h"
#include "engine/jinja/repr.h"

namespace troupe::engine::jinja {
namespace {

using Type = Value::Type;

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}
bool is_spec_digit(char c) {
  return c >= '0' && c <= '9';
}

class SpecReader {
 public:
  explicit SpecReader(const std::string& spec) : spec_(spec) {}

  FieldStyle read(bool number) {
    FieldStyle out;
    const std::size_t first = spec_.empty() ? 0 : utf8_length(spec_[0]);
    const bool filled = first < spec_.size() && is_align(spec_[first]);
    if (filled) {
      out.fill = spec_.substr(0, first);
      out.align = spec_[first];
      at_ = first + 1;
    } else if (is_align(peek()))
      out.align = spec_[at_++];
    if (peek() == '+' || peek() == '-' || peek() == ' ') out.sign = spec_[at_++];
    if (peek() == '#') {
      out.alternate = true;
      ++at_;
    }
    if (peek() == '0' && !filled) {
      out.fill.assign(1, '0');
      ++at_;
      if (number && out.align == '\0') out.align = '=';
    }
    out.width = static_cast<std::size_t>(digits());
    if (peek() == ',' || peek() == '_') out.grouping = spec_[at_++];
    if (peek() == '.') {
      ++at_;
      if (!is_spec_digit(peek())) raise("Format specifier missing precision");
      out.precision = digits();
    }
    if (at_ < spec_.size()) out.kind = spec_[at_++];
    if (at_ < spec_.size()) raise(cat("Invalid format specifier ", quote(spec_)));
    return out;
  }

 private:
  char peek() const { return at_ < spec_.size() ? spec_[at_] : '\0'; }
  int digits() {
    int out = 0;
    while (is_spec_digit(peek())) {
      out = out * 10 + (spec_[at_++] - '0');
      if (out > 100'000'000) raise("Too many decimal digits in format string");
    }
    return out;
  }

  const std::string& spec_;
  std::size_t at_ = 0;
};

std::string integer_in_field(Runtime& runtime, const Value& value, const FieldStyle& style) {
  if (std::string_view("eEfFgG%").find(style.kind) != std::string_view::npos && style.kind)
    return format_real(runtime, style, value.real());
  if (style.kind && std::string_view("bcdoxXn").find(style.kind) == std::string_view::npos)
    raise(
        cat("Unknown format code '", style.kind, "' for object of type '", value.type_name(), "'"));
  if (style.precision >= 0) raise("Precision not allowed in integer format specifier");
  if (style.grouping == ',' && style.kind && style.kind != 'd')
    raise(cat("Cannot specify ',' with '", style.kind, "'."));
  if (style.kind == 'c' && (style.sign != '-' || style.alternate))
    raise("Sign not allowed with integer format specifier 'c'");
  return format_integer(runtime, style, value.integer());
}

std::string text_in_field(Runtime& runtime, const Value& value, const FieldStyle& style) {
  if (style.kind && style.kind != 's')
    raise(cat("Unknown format code '", style.kind, "' for object of type 'str'"));
  if (style.sign != '-') raise("Sign not allowed in string format specifier");
  if (style.alternate) raise("Alternate form (#) not allowed in string format specifier");
  if (style.grouping) raise(cat("Cannot specify '", style.grouping, "' with 's'."));
  if (style.align == '=') raise("'=' alignment not allowed in string format specifier");
  return format_text(runtime, style, value.string());
}

class Braces {
 public:
  Braces(Runtime& runtime, bool escapes, const Arguments& arguments)
      : runtime_(runtime), escapes_(escapes), arguments_(arguments) {}

  std::string run(const std::string& format, int depth) {
    if (depth > 2) raise("Max string recursion exceeded");
    std::string out;
    for (std::size_t at = 0; at < format.size();) {
      const char c = format[at];
      if ((c == '{' || c == '}') && at + 1 < format.size() && format[at + 1] == c) {
        out += c;
        at += 2;
      } else if (c == '}') {
        raise("Single '}' encountered in format string");
      } else if (c == '{') {
        const std::size_t end = end_of_field(format, at);
        const std::string filled = field(format.substr(at + 1, end - at - 1), depth);
        runtime_.grow(out.size(), filled.size());
        out += filled;
        at = end + 1;
      } else {
        out += c;
        ++at;
      }
    }
    return out;
  }

 private:
  static std::size_t end_of_field(const std::string& format, std::size_t at) {
    int open = 0;
    bool inside = false;  // of a [key], where braces mean nothing
    for (std::size_t i = at; i < format.size(); ++i) {
      if (!open || !inside) open += format[i] == '{' ? 1 : format[i] == '}' ? -1 : 0;
      if (format[i] == '[' && open == 1) inside = true;
      if (format[i] == ']') inside = false;
      if (open == 0) return i;
    }
    raise("expected '}' before end of string");
  }

  std::string field(const std::string& text, int depth) {
    std::size_t at = 0;
    for (bool inside = false; at < text.size() && (inside || (text[at] != ':' && text[at] != '!'));
         ++at) {
      if (text[at] == '[') inside = true;
      if (text[at] == ']') inside = false;
    }
    const std::string name = text.substr(0, at);
    char conversion = '\0';
    if (at < text.size() && text[at] == '!') {
      if (at + 1 >= text.size()) raise("end of string while looking for conversion specifier");
      conversion = text[at + 1];
      at += 2;
      if (at < text.size() && text[at] != ':') raise("expected ':' after conversion specifier");
    }
    Value value = look_up(name);
    if (conversion == 's')
      value = runtime_.text(value);
    else if (conversion == 'r' || conversion == 'a') {
      runtime_.account(value);
      value = conversion == 'r' ? to_repr(value) : to_ascii(value);
    } else if (conversion)
      raise(cat("Unknown conversion specifier '", conversion, "'"));
    const std::string spec = at < text.size() ? run(text.substr(at + 1), depth + 1) : "";
    const std::string out = format_value(runtime_, value, spec);
    return escapes_ && !value.is_markup() ? escape_html(out) : out;
  }

  Value look_up(const std::string& name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    const std::string first = name.substr(0, end);
    if (first.empty() && !name.empty())
      raise("a format's place needs a number or a name before its [ or .");
    Value out = argument(first);
    for (std::size_t at = end; at < name.size();) {
      const bool item = name[at] == '[';
      const std::size_t stop =
          item ? name.find(']', at) : std::min(name.find_first_of(".[", at + 1), name.size());
      if (stop == std::string::npos) raise("Missing ']' in format string");
      const std::string key = name.substr(at + 1, stop - at - 1);
      if (key.empty()) raise("Empty attribute in format string");
      const bool number =
          item && key.size() < 10 && std::all_of(key.begin(), key.end(), is_spec_digit);
      out = !item ? runtime_.attribute(out, key)
                  : runtime_.item(out, number ? Value(std::stoi(key)) : Value(key));
      at = item ? stop + 1 : stop;
      if (item && at < name.size() && name[at] != '.' && name[at] != '[')
        raise("Only '.' or '[' may follow ']' in format field specifier");
    }
    return out;
  }

  Value argument(const std::string& name) {
    const bool number =
        !name.empty() && name.size() < 10 && std::all_of(name.begin(), name.end(), is_spec_digit);
    if (name.empty() || number) {
      if ((name.empty() ? numbered_ : ordered_))
        raise("cannot mix automatic field numbering and manual field specification");
      (name.empty() ? ordered_ : numbered_) = true;
      const auto index = name.empty() ? order_++ : static_cast<std::size_t>(std::stoi(name));
      if (index >= arguments_.positional.size())
        raise("Replacement index out of range for positional args tuple");
      return arguments_.positional[index];
    }
    work(8 * arguments_.keyword.size());
    for (const auto& [key, value] : arguments_.keyword)
      if (key == name) return value;
    raise(cat("no argument for the place ", quote(name), " of the format"));
  }

  Runtime& runtime_;
  const bool escapes_;
  const Arguments& arguments_;
  std::size_t order_ = 0;
  bool ordered_ = false, numbered_ = false;
};

}  // namespace

std::string format_value(Runtime& runtime, const Value& value, const std::string& spec) {
  if (spec.empty()) return runtime.text(value);
  const bool text = value.is(Type::string);
  if (!text && !value.is_number())
    raise(cat("unsupported format string passed to ", value.type_name(), ".__format__"));
  const FieldStyle style = SpecReader(spec).read(!text);
  if (text) return text_in_field(runtime, value, style);
  if (value.is_integral()) return integer_in_field(runtime, value, style);
  if (style.kind && std::string_view("eEfFgGn%").find(style.kind) == std::string_view::npos)
    raise(cat("Unknown format code '", style.kind, "' for object of type 'float'"));
  return format_real(runtime, style, value.real());
}

Value format_braces(Runtime& runtime, const Value& format, const Arguments& arguments) {
  std::string out = Braces(runtime, format.is_markup(), arguments).run(format.string(), 1);
  return format.is_markup() ? Value::markup(std::move(out)) : Value(std::move(out));
}

}  // namespace troupe::engine::jinja
