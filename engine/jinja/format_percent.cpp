#include "engine/jinja/format_percent.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/format.h"
#include "engine/jinja/operators.h"
#include "engine/jinja/repr.h"

namespace troupe::engine::jinja {
namespace {

using Type = Value::Type;

constexpr int largest_number = 100'000'000;

class Percent {
 public:
  Percent(Runtime& runtime, const Value& format, const Value& values)
      : runtime_(runtime), format_(format.string()), values_(values), escapes_(format.is_markup()) {
    tuple_ = values.is(Type::list) && values.list().kind == List::Kind::tuple;
    mapping_ = !tuple_ && (values.is(Type::dict) || values.is(Type::undefined) ||
                           (values.is(Type::list) && values.list().indexable()));
  }

  std::string run() {
    std::string out;
    while (at_ < format_.size()) {
      const std::size_t next = std::min(format_.find('%', at_), format_.size());
      out.append(format_, at_, next - at_);
      at_ = next + 1;
      const std::string converted = next < format_.size() ? conversion() : "";
      runtime_.grow(out.size(), converted.size());
      out += converted;
    }
    if (tuple_ ? used_ < values_.list().items.size() : used_ == 0 && !mapping_)
      raise("not all arguments converted during string formatting");
    return out;
  }

 private:
  const Value& next() {
    if (tuple_ ? used_ >= values_.list().items.size() : used_ > 0)
      raise("not enough arguments for format string");
    return tuple_ ? values_.list().items[used_++] : (++used_, values_);
  }

  char peek() const {
    if (at_ >= format_.size()) raise("incomplete format");
    return format_[at_];
  }

  // Digits, or a star that takes the number from the values.
  int number() {
    if (peek() == '*') {
      ++at_;
      const std::int64_t given = to_integer(next(), "*");
      if (given > largest_number || given < -largest_number)
        raise("a width or precision that is too large");
      return static_cast<int>(given);
    }
    int out = 0;
    while (peek() >= '0' && peek() <= '9') {
      out = out * 10 + (format_[at_++] - '0');
      if (out > largest_number) raise("a width or precision that is too large");
    }
    return out;
  }

  // (key), of a dict.
  std::optional<Value> named() {
    if (peek() != '(') return std::nullopt;
    const auto end = format_.find(')', at_);
    if (end == std::string::npos) raise("incomplete format key");
    if (!values_.is(Type::dict)) raise("format requires a mapping");
    const Value* found =
        values_.dict().find_text(std::string_view(format_).substr(at_ + 1, end - at_ - 1));
    if (!found) raise("a key of the format is missing");
    ++used_;
    at_ = end + 1;
    return *found;
  }

  bool flags(FieldStyle& style) {
    bool zeros = false;
    for (bool flag = true; flag;) {
      const char c = peek();
      flag = c == '-' || c == '+' || c == ' ' || c == '#' || c == '0';
      if (c == '-') style.align = '<';
      if (c == '+' || (c == ' ' && style.sign != '+')) style.sign = c;
      style.alternate |= c == '#';
      zeros |= c == '0';
      at_ += flag;
    }
    return zeros;
  }

  std::string conversion() {
    const std::optional<Value> by_name = named();
    FieldStyle style;
    style.align = '>';
    const bool zeros = flags(style);
    const int width = number();
    if (width < 0) style.align = '<';
    style.width = static_cast<std::size_t>(std::abs(width));
    if (peek() == '.') {
      ++at_;
      style.precision = std::max(number(), 0);
    }
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    style.kind = peek();
    ++at_;
    if (style.kind == '%') return "%";
    return convert(style, zeros, by_name ? *by_name : next());
  }

  std::string convert(FieldStyle style, bool zeros, const Value& value) {
    const char kind = style.kind;
    if (kind == 's' || kind == 'r' || kind == 'a') {
      std::string text =
          kind == 's' ? runtime_.text(value)
                      : (runtime_.account(value), kind == 'r' ? to_repr(value) : to_ascii(value));
      return format_text(runtime_, style,
                         escapes_ && !value.is_markup() ? escape_html(text) : text);
    }
    if (kind == 'c' && value.is(Type::string)) {
      if (count_code_points(value.string()) != 1) raise("%c requires int or char");
      return format_text(runtime_, style, value.string());
    }
    if (std::string_view("diuxXoceEfFgG").find(kind) == std::string_view::npos)
      raise(cat("unsupported format character '", kind, "'"));
    require_defined(value);
    if (!value.is_number())
      raise(cat("%", kind, " format: a number is required, not ", value.type_name()));
    if (zeros && style.align != '<') {
      style.fill.assign(1, '0');
      style.align = '=';
    }
    if (std::string_view("eEfFgG").find(kind) != std::string_view::npos)
      return format_real(runtime_, style, value.real());
    const bool whole = kind == 'd' || kind == 'i' || kind == 'u';
    if (!whole && !value.is_integral())
      raise(cat("%", kind, " format: an integer is required, not ", value.type_name()));
    if (whole) style.kind = 'd';
    return format_integer(runtime_, style, whole_number(value));
  }

  Runtime& runtime_;
  const std::string& format_;
  const Value& values_;
  bool escapes_, tuple_ = false, mapping_ = false;
  std::size_t at_ = 0, used_ = 0;
};

}  // namespace

Value format_percent(Runtime& runtime, const Value& format, const Value& values) {
  std::string out = Percent(runtime, format, values).run();
  return format.is_markup() ? Value::markup(std::move(out)) : Value(std::move(out));
}

}  // namespace troupe::engine::jinja
