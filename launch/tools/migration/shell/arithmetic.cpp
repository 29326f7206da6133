#include "launch/tools/migration/shell/arithmetic.h"

#include <array>
#include <cctype>
#include <limits>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {
namespace {

/// Why an expression has no value; caught by arithmetic().
struct NoValue {
  std::string why;
};

struct Operation {
  std::string_view text;
  int level;  ///< higher binds closer
};
// Longer operators before their beginnings.
constexpr std::array operators{
    Operation{"||", 1},  Operation{"&&", 2}, Operation{"==", 6}, Operation{"!=", 6},
    Operation{"<=", 7},  Operation{">=", 7}, Operation{"<<", 8}, Operation{">>", 8},
    Operation{"**", 11}, Operation{"|", 3},  Operation{"^", 4},  Operation{"&", 5},
    Operation{"<", 7},   Operation{">", 7},  Operation{"+", 9},  Operation{"-", 9},
    Operation{"*", 10},  Operation{"/", 10}, Operation{"%", 10}};
constexpr std::array<std::string_view, 11> assignments{
    "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "="};

/// As two's complement does, without undefined behaviour.
std::int64_t wrapped(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

class Calculator {
 public:
  Calculator(std::string_view text, ShellState& state, Budget& budget, int& depth)
      : text_(text), state_(state), budget_(budget), depth_(depth) {}

  std::int64_t whole() {
    skip();
    if (at_ == text_.size()) return 0;
    const std::int64_t value = comma();
    if (at_ != text_.size()) throw NoValue{cat("the arithmetic expression ", quote(text_, 40))};
    return value;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  std::int64_t comma() {
    std::int64_t value = conditional();
    while (accept(",")) value = conditional();
    skip();
    return value;
  }

  std::int64_t conditional() {
    const Level level(depth_, text_);
    const std::int64_t condition = binary(1);
    if (!accept("?")) return condition;
    const std::int64_t yes = skipped(condition == 0, [&] { return comma(); });
    if (!accept(":")) throw NoValue{cat("the arithmetic expression ", quote(text_, 40))};
    const std::int64_t no = skipped(condition != 0, [&] { return conditional(); });
    return condition != 0 ? yes : no;
  }

  /// The operand that is not needed has no effects.
  template <class Read>
  std::int64_t skipped(bool skips, Read read) {
    unused_ += skips;
    const std::int64_t value = read();
    unused_ -= skips;
    return value;
  }

  const Operation* operation(int level) {
    skip();
    for (const Operation& each : operators)
      if (text_.substr(at_, each.text.size()) == each.text) {
        const bool assigns = text_.substr(at_ + each.text.size(), 1) == "=" && each.level != 6 &&
                             each.level != 7 && each.level > 2;
        return each.level < level || assigns ? nullptr : &each;
      }
    return nullptr;
  }

  std::int64_t binary(int level) {
    const Level nested(depth_, text_);
    std::int64_t left = unary();
    while (const Operation* each = operation(level)) {
      budget_.work(1);
      at_ += each->text.size();
      const bool skips = (each->level == 1 && left != 0) || (each->level == 2 && left == 0);
      const int next = each->level == 11 ? 11 : each->level + 1;
      const std::int64_t right = skipped(skips, [&] { return binary(next); });
      left = applied(each->text, left, right);
    }
    return left;
  }

  std::int64_t applied(std::string_view operation, std::int64_t left, std::int64_t right) const {
    const auto a = static_cast<std::uint64_t>(left), b = static_cast<std::uint64_t>(right);
    if (operation == "+") return wrapped(a + b);
    if (operation == "-") return wrapped(a - b);
    if (operation == "*") return wrapped(a * b);
    if (operation == "/" || operation == "%") return divided(operation == "/", left, right);
    if (operation == "**") return power(left, right);
    if (operation == "||") return left != 0 || right != 0;
    if (operation == "&&") return left != 0 && right != 0;
    if (operation == "==") return left == right;
    if (operation == "!=") return left != right;
    if (operation == "<=") return left <= right;
    if (operation == ">=") return left >= right;
    if (operation == "<") return left < right;
    if (operation == ">") return left > right;
    if (operation == "<<") return wrapped(a << (b & 63));
    if (operation == ">>") return left >> (b & 63);
    if (operation == "|") return wrapped(a | b);
    if (operation == "^") return wrapped(a ^ b);
    return wrapped(a & b);
  }

  std::int64_t divided(bool quotient, std::int64_t left, std::int64_t right) const {
    if (right == 0) {
      if (unused_ > 0) return 0;
      throw NoValue{cat("a division by 0 in ", quote(text_, 40))};
    }
    if (left == std::numeric_limits<std::int64_t>::min() && right == -1) return quotient ? left : 0;
    return quotient ? left / right : left % right;
  }

  std::int64_t power(std::int64_t base, std::int64_t exponent) const {
    if (exponent < 0) throw NoValue{cat("a negative exponent in ", quote(text_, 40))};
    std::uint64_t value = 1, square = static_cast<std::uint64_t>(base);
    for (; exponent > 0; exponent >>= 1, square *= square)
      if (exponent & 1) value *= square;
    return wrapped(value);
  }

  std::int64_t unary() {
    const Level level(depth_, text_);
    for (const std::string_view step : {"++", "--"})
      if (accept(step)) {
        const std::string name = read_name();
        const std::int64_t value = variable(name) + (step == "++" ? 1 : -1);
        store(name, value);
        return value;
      }
    if (accept("-")) return wrapped(-static_cast<std::uint64_t>(unary()));
    if (accept("+")) return unary();
    if (accept("!")) return unary() == 0;
    if (accept("~")) return ~unary();
    return operand();
  }

  std::int64_t operand() {
    skip();
    if (accept("(")) {
      const std::int64_t value = comma();
      if (!accept(")")) throw NoValue{cat("the arithmetic expression ", quote(text_, 40))};
      return value;
    }
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) return number();
    return named();
  }

  std::int64_t number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (is_name_character(text_[at_]) || text_[at_] == '#' || text_[at_] == '@'))
      ++at_;
    std::string_view digits = text_.substr(begin, at_ - begin);
    std::uint64_t base = 10;
    if (const auto mark = digits.find('#'); mark != digits.npos) {
      base = static_cast<std::uint64_t>(whole_number(digits.substr(0, mark)).value_or(0));
      digits.remove_prefix(mark + 1);
    } else if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.size() > 1 && digits[0] == '0') {
      base = 8;
    }
    if (base < 2 || base > 36) throw NoValue{cat("a number of base ", base)};
    std::uint64_t value = 0;
    for (const char c : digits) {
      const auto u = static_cast<unsigned char>(c);
      const std::uint64_t digit = std::isdigit(u) ? static_cast<std::uint64_t>(c - '0')
                                  : std::isalpha(u)
                                      ? static_cast<std::uint64_t>(std::tolower(u) - 'a' + 10)
                                      : 99;
      if (digit >= base) throw NoValue{cat("the number ", quote(digits, 40))};
      value = value * base + digit;
    }
    return wrapped(value);
  }

  std::string read_name() {
    skip();
    const std::size_t end = end_of_name(text_, at_);
    if (end == at_) throw NoValue{cat("the arithmetic expression ", quote(text_, 40))};
    std::string name(text_.substr(at_, end - at_));
    at_ = end;
    return name;
  }

  std::int64_t named() {
    const std::string name = read_name();
    std::string index;
    if (at_ < text_.size() && text_[at_] == '[') {
      ++at_;
      index = std::to_string(comma());
      if (!accept("]")) throw NoValue{cat("the arithmetic expression ", quote(text_, 40))};
    }
    for (const std::string_view each : assignments) {
      skip();
      if (text_.substr(at_, each.size()) != each || text_.substr(at_, 2) == "==") continue;
      at_ += each.size();
      const std::int64_t right = conditional();
      const std::int64_t value =
          each == "=" ? right
                      : applied(each.substr(0, each.size() - 1), variable(name, index), right);
      store(name, value, index);
      return value;
    }
    const std::int64_t value = variable(name, index);
    for (const std::string_view step : {"++", "--"})
      if (accept(step)) store(name, step == "++" ? value + 1 : value - 1, index);
    return value;
  }

  std::int64_t variable(const std::string& name, const std::string& index = "") {
    const Variable* found = state_.find(name);
    if (!found) {
      if (!state_.sourced.empty() && unused_ == 0)
        throw NoValue{cat(name, ", which ", state_.sourced, " may set")};
      return 0;
    }
    const auto item = found->items.find(index.empty() ? 0 : *whole_number(index));
    if (item == found->items.end()) return 0;
    if (!item->second.unknown.empty()) {
      if (unused_ > 0) return 0;
      throw NoValue{item->second.unknown};
    }
    const Level level(depth_, name);
    const std::string text = item->second.text;
    budget_.work(text.size());
    return Calculator(text, state_, budget_, depth_).whole();
  }

  void store(const std::string& name, std::int64_t value, const std::string& index = "") {
    if (unused_ > 0) return;
    if (index.empty())
      state_.set(name, Value{std::to_string(value), "", ""});
    else
      state_.set_item(name, index, {std::to_string(value), "", ""});
  }

  std::string_view text_;
  ShellState& state_;
  Budget& budget_;
  int& depth_;
  std::size_t at_ = 0;
  int unused_ = 0;  ///< levels of operands without effects
};

}  // namespace

Value arithmetic(std::string_view expression, std::size_t line, ShellState& state, Budget& budget) {
  budget.work(expression.size());
  int depth = 0;
  try {
    return {std::to_string(Calculator(expression, state, budget, depth).whole()), "", ""};
  } catch (const NoValue& none) {
    const bool placed = none.why.find("(line ") != std::string::npos;
    return {cat("$((", expression, "))"), placed ? none.why : cat(none.why, " (line ", line, ")"),
            ""};
  }
}

}  // namespace troupe::launch::tools::migration::shell
