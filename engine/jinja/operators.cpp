#include "engine/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"
#include "engine/jinja/format.h"
#include "engine/jinja/format_percent.h"
#include "engine/jinja/repr.h"
#include "engine/jinja/runtime.h"
#include "engine/jinja/string_search.h"

namespace troupe::engine::jinja {
namespace {

using Type = Value::Type;

[[noreturn]] void overflow() {
  raise("an integer beyond 64 bits");
}
[[noreturn]] void unsupported(const std::string& op, const Value& left, const Value& right) {
  raise(cat("unsupported operand type(s) for ", op, ": '", left.type_name(), "' and '",
            right.type_name(), "'"));
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) overflow();
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) raise("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t out = 1;
  if (base == 0 || base == 1) return exponent == 0 ? std::int64_t{1} : base;
  if (base == -1) return exponent % 2 ? std::int64_t{-1} : std::int64_t{1};
  for (std::int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(out, base, &out)) overflow();
  return out;
}

Value integer_arithmetic(const std::string& op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if ((op == "/" || op == "//" || op == "%") && b == 0) raise("division by zero");
  if (op == "+" && __builtin_add_overflow(a, b, &out)) overflow();
  if (op == "-" && __builtin_sub_overflow(a, b, &out)) overflow();
  if (op == "*" && __builtin_mul_overflow(a, b, &out)) overflow();
  if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  if (op == "//") return floor_divide(a, b);
  if (op == "%") return b == -1 ? std::int64_t{0} : a - b * floor_divide(a, b);
  if (op == "**") return integer_power(a, b);
  return out;
}

double real_power(double a, double b) {
  if (a == 0 && b < 0) raise("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    raise("a negative number to a broken power is complex");
  const double out = std::pow(a, b);
  if (std::isinf(out) && std::isfinite(a) && std::isfinite(b))
    raise("the result of ** is too large");
  return out;
}

Value real_arithmetic(const std::string& op, double a, double b) {
  if ((op == "/" || op == "//" || op == "%") && b == 0) raise("float division by zero");
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/") return a / b;
  if (op == "**") return real_power(a, b);
  // The remainder has the sign of b, as in Python's float_divmod.
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (rest == 0) rest = std::copysign(0.0, b);
  if (op == "%") return rest;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Value repeat(Runtime& runtime, const Value& value, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (value.is(Type::string)) {
    const std::string& text = value.string();
    runtime.reserve(text.empty()                     ? 0
                    : times > (std::size_t{1} << 40) ? times
                                                     : text.size() * times);
    std::string out;
    for (std::size_t i = 0; i < times && !text.empty(); ++i) out += text;
    return value.is_markup() ? Value::markup(std::move(out)) : Value(std::move(out));
  }
  List out;
  out.kind = value.list().kind;
  const auto& items = value.list().items;
  runtime.reserve_items(items.empty()                    ? 0
                        : times > (std::size_t{1} << 40) ? times
                                                         : items.size() * times);
  for (std::size_t i = 0; i < times && !items.empty(); ++i)
    out.items.insert(out.items.end(), items.begin(), items.end());
  return out;
}

Value add(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is(Type::string)) {
    if (!right.is(Type::string))
      raise(cat("can only concatenate str (not \"", right.type_name(), "\") to str"));
    runtime.reserve(left.string().size() + right.string().size());
    if (!left.is_markup() && !right.is_markup()) return left.string() + right.string();
    // Markup escapes the text that is joined to it.
    const auto safe = [](const Value& side) {
      return side.is_markup() ? side.string() : escape_html(side.string());
    };
    return Value::markup(safe(left) + safe(right));
  }
  if (left.is(Type::list) && right.is(Type::list) && left.list().kind == right.list().kind &&
      left.list().is_plain()) {
    runtime.reserve_items(left.list().items.size() + right.list().items.size());
    List out = left.list();
    out.items.insert(out.items.end(), right.list().items.begin(), right.list().items.end());
    return out;
  }
  unsupported("+", left, right);
}

// True if a generator yields `value`; the items before it are consumed.
bool given(Runtime& runtime, const Value& generator, const Value& value) {
  for (auto item = runtime.items_of(generator, 1); !item.empty();
       item = runtime.items_of(generator, 1))
    if (equal(item[0], value)) return true;
  return false;
}

bool contains(Runtime& runtime, const Value& container, const Value& value) {
  runtime.account(value);
  switch (container.type()) {
    case Type::undefined:
      if (strict_template()) raise(container.reason());
      return false;
    case Type::string:
      return find_text(container.string(), to_text(value, "the left side of 'in' a string")) !=
             std::string::npos;
    case Type::list: {
      runtime.account(container);
      const auto& items = container.list().items;
      if (container.list().kind == List::Kind::generator) return given(runtime, container, value);
      return std::any_of(items.begin(), items.end(),
                         [&](const Value& item) { return equal(item, value); });
    }
    case Type::dict:
      require_hashable(value);
      return container.dict().find(value) != nullptr;
    default:
      raise(cat("argument of type '", container.type_name(), "' is not iterable"));
  }
}

}  // namespace

Value binary(Runtime& runtime, const std::string& op, const Value& left, const Value& right) {
  if (op == "~") {
    std::string out = runtime.text(left);
    const std::string more = runtime.text(right);
    runtime.grow(out.size(), more.size());
    return out += more;
  }
  require_defined(left);
  if (op == "%" && left.is(Type::string)) return format_percent(runtime, left, right);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral())
      return integer_arithmetic(op, left.integer(), right.integer());
    return real_arithmetic(op, left.real(), right.real());
  }
  if (op == "+") return add(runtime, left, right);
  if (op == "*") {
    const auto sequence = [](const Value& v) {
      return v.is(Type::string) || (v.is(Type::list) && v.list().is_plain());
    };
    if (sequence(left) && right.is_integral()) return repeat(runtime, left, right.integer());
    if (sequence(right) && left.is_integral()) return repeat(runtime, right, left.integer());
  }
  unsupported(op, left, right);
}

bool compare(Runtime& runtime, const std::string& op, const Value& left, const Value& right) {
  if (op == "in") return contains(runtime, right, left);
  if (op == "not in") return !contains(runtime, right, left);
  runtime.account(left);
  if (op == "==") return equal(left, right);
  if (op == "!=") return !equal(left, right);
  if (op == "<") return less(left, right);
  if (op == ">") return less(right, left);
  if (op == "<=") return less(left, right) || equal(left, right);
  return less(right, left) || equal(left, right);
}

std::int64_t whole_number(const Value& value) {
  if (value.is_integral()) return value.integer();
  if (!std::isfinite(value.real()))
    raise(cat("cannot convert float ", real_to_string(value.real()), " to integer"));
  if (std::fabs(value.real()) >= 9.2e18) overflow();
  return static_cast<std::int64_t>(value.real());
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is(Type::real)) return -value.real();
  if (!value.is_integral()) raise(cat("bad operand type for unary -: '", value.type_name(), "'"));
  if (value.integer() == std::numeric_limits<std::int64_t>::min()) overflow();
  return -value.integer();
}

namespace {

// start + count * step.
std::int64_t moved(std::int64_t start, std::int64_t count, std::int64_t step) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(count, step, &out) || __builtin_add_overflow(start, out, &out))
    overflow();
  return out;
}

}  // namespace

Value slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
            const Value& step) {
  require_defined(value);
  const bool text = value.is(Type::string);
  if (!text && !(value.is(Type::list) && value.list().indexable()))
    raise(cat("'", value.type_name(), "' object is not subscriptable"));
  const std::int64_t stride = step.is(Type::none) ? 1 : to_integer(step, "a slice's step");
  if (stride == 0) raise("slice step cannot be zero");
  const std::vector<Value> characters = text ? runtime.items_of(value) : std::vector<Value>();
  const auto& items = text ? characters : value.list().items;
  const auto size = static_cast<std::int64_t>(items.size());
  const auto bound = [&](const Value& given, std::int64_t otherwise) {
    if (given.is(Type::none)) return otherwise;
    std::int64_t at = to_integer(given, "a slice's bound");
    if (at < 0) at = std::max(at, -size - 1) + size;
    return std::clamp<std::int64_t>(at, stride < 0 ? -1 : 0, stride < 0 ? size - 1 : size);
  };
  const std::int64_t from = bound(start, stride < 0 ? size - 1 : 0),
                     to = bound(stop, stride < 0 ? -1 : size);
  const std::int64_t jump = std::clamp<std::int64_t>(stride, -size - 1, size + 1);
  List out;
  std::string joined;
  for (std::int64_t i = from; stride < 0 ? i > to : i < to; i += jump) {
    const Value& item = items[static_cast<std::size_t>(i)];
    if (text)
      joined += item.string();
    else
      out.items.push_back(item);
  }
  if (text) return value.is_markup() ? Value::markup(std::move(joined)) : Value(std::move(joined));
  out.kind = value.list().kind;
  const auto& range = value.list().range;
  if (out.kind == List::Kind::range)
    out.range = {moved(range[0], from, range[2]), moved(range[0], to, range[2]),
                 moved(0, range[2], stride)};
  runtime.charge(out.items.size());
  return out;
}

}  // namespace troupe::engine::jinja
