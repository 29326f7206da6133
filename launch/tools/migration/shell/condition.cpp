#include "launch/tools/migration/shell/condition.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/tools/migration/shell/pattern.h"
#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {
namespace {

using Kind = Status::Kind;

constexpr std::array<std::string_view, 16> binary_operators{
    "=",   "==",  "!=",  "<",   ">",   "=~",  "-eq", "-ne",
    "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-st"};

bool is_binary(std::string_view text) {
  return std::ranges::find(binary_operators, text) != binary_operators.end();
}

bool is_unary(std::string_view text) {
  return text.size() == 2 && text[0] == '-' && text[1] != 'a' && text[1] != 'o' &&
         is_name_character(text[1]);
}

Status unknown(std::string why) {
  return {Kind::unknown, std::move(why)};
}

Status both(Status left, Status right) {
  if (left.kind == Kind::no || right.kind == Kind::no) return {Kind::no, ""};
  return left.kind == Kind::yes ? right : left;
}

Status either(Status left, Status right) {
  if (left.kind == Kind::yes || right.kind == Kind::yes) return {Kind::yes, ""};
  return left.kind == Kind::no ? right : left;
}

Status compared(std::string_view operation, const Value& left, const Value& right,
                std::size_t line) {
  for (const Value* each : {&left, &right})
    if (!each->unknown.empty()) return unknown(each->unknown);
  if (operation == "=" || operation == "==") return status_of(left.text == right.text);
  if (operation == "!=") return status_of(left.text != right.text);
  if (operation == "<") return status_of(left.text < right.text);
  if (operation == ">") return status_of(left.text > right.text);
  const auto a = whole_number(left.text), b = whole_number(right.text);
  const std::array<std::pair<std::string_view, std::function<bool()>>, 6> numbers{
      {{"-eq", [&] { return *a == *b; }},
       {"-ne", [&] { return *a != *b; }},
       {"-lt", [&] { return *a < *b; }},
       {"-le", [&] { return *a <= *b; }},
       {"-gt", [&] { return *a > *b; }},
       {"-ge", [&] { return *a >= *b; }}}};
  for (const auto& [name, compare] : numbers)
    if (name == operation) return a && b ? status_of(compare()) : Status{Kind::no, ""};
  return unknown(cat("the test ", operation, " (line ", line, ")"));
}

Status unary(std::string_view operation, const Value& value, std::size_t line) {
  if (operation == "-z" || operation == "-n") {
    if (!value.unknown.empty()) return unknown(value.unknown);
    return status_of(value.text.empty() == (operation == "-z"));
  }
  return unknown(cat("the test ", operation, ' ', quote(value.text, 60), " (line ", line, ")"));
}

/// The grammar that [ ] and [[ ]] have in common.
class Tests {
 public:
  using Operand = std::function<Value(std::size_t)>;
  using Compare = std::function<Status(std::string_view, std::size_t, std::size_t)>;
  using Unary = std::function<Status(std::string_view, std::size_t)>;

  Tests(std::vector<std::string> words, std::string_view also, std::string_view otherwise,
        Operand operand, Compare compare, Unary unary)
      : words_(std::move(words)),
        also_(also),
        otherwise_(otherwise),
        operand_(std::move(operand)),
        compare_(std::move(compare)),
        unary_(std::move(unary)) {}

  Status whole() {
    if (words_.empty()) return {Kind::no, ""};
    Status status = any();
    return at_ == words_.size() ? status : unknown(cat("the test ", quote(words_[at_], 60)));
  }

 private:
  bool is(std::string_view text, std::size_t ahead = 0) const {
    return at_ + ahead < words_.size() && words_[at_ + ahead] == text;
  }

  Status any() {
    const Level level(depth_, "a test");
    Status status = all();
    while (is(otherwise_)) {
      ++at_;
      status = either(std::move(status), all());
    }
    return status;
  }

  Status all() {
    Status status = one();
    while (is(also_)) {
      ++at_;
      status = both(std::move(status), one());
    }
    return status;
  }

  Status one() {
    const Level level(depth_, "a test");
    const std::size_t left = words_.size() - at_;
    if (left >= 3 && is_binary(words_[at_ + 1])) {
      at_ += 3;
      return compare_(words_[at_ - 2], at_ - 3, at_ - 1);
    }
    if (is("!") && left > 1) {
      ++at_;
      return negated(one());
    }
    if (is("(") && left > 2) {
      ++at_;
      Status status = any();
      if (is(")")) ++at_;
      return status;
    }
    if (left >= 2 && is_unary(words_[at_])) {
      at_ += 2;
      return unary_(words_[at_ - 2], at_ - 1);
    }
    if (left == 0) return unknown("an incomplete test");
    const Value value = operand_(at_++);
    return value.unknown.empty() ? status_of(!value.text.empty()) : unknown(value.unknown);
  }

  std::vector<std::string> words_;
  std::string_view also_, otherwise_;
  Operand operand_;
  Compare compare_;
  Unary unary_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Status status_of(bool value) {
  return {value ? Kind::yes : Kind::no, ""};
}

Status negated(Status status) {
  if (status.known()) return status_of(status.kind == Kind::no);
  return unknown(std::move(status.why));
}

Status test_command(const std::vector<Field>& fields, std::size_t line) {
  std::vector<std::string> words;
  for (const Field& field : fields) {
    if (field.open) return unknown(field.value.unknown);
    // An unknown word is no operator.
    words.push_back(field.value.unknown.empty() ? field.value.text : std::string(1, '\0'));
  }
  const auto value = [&](std::size_t at) { return fields[at].value; };
  return Tests(
             words, "-a", "-o", value,
             [&](std::string_view operation, std::size_t left, std::size_t right) {
               return compared(operation, value(left), value(right), line);
             },
             [&](std::string_view operation, std::size_t at) {
               return unary(operation, value(at), line);
             })
      .whole();
}

Status test_expression(const std::vector<Word>& words, Expander& expander, const ShellState& state,
                       Budget& budget) {
  std::vector<std::string> raw;
  for (const Word& word : words) raw.push_back(word.raw);
  const auto compare = [&](std::string_view operation, std::size_t left, std::size_t right) {
    if (operation == "=~")
      return unknown(
          cat("the test =~ ", quote(words[right].raw, 60), " (line ", words[right].line, ")"));
    if (operation.starts_with('-'))
      return compared(operation, expander.arithmetic(words[left]),
                      expander.arithmetic(words[right]), words[left].line);
    const Value text = expander.single(words[left]);
    if (operation == "<" || operation == ">")
      return compared(operation, text, expander.single(words[right]), words[left].line);
    const Value pattern = expander.pattern(words[right]);
    for (const Value* each : {&text, &pattern})
      if (!each->unknown.empty()) return unknown(each->unknown);
    return status_of(matches(pattern.text, text.text, budget) == (operation != "!="));
  };
  const auto single = [&](std::string_view operation, std::size_t at) {
    if (operation == "-v") return status_of(state.find(words[at].raw) != nullptr);
    return unary(operation, expander.single(words[at]), words[at].line);
  };
  return Tests(
             raw, "&&", "||", [&](std::size_t at) { return expander.single(words[at]); }, compare,
             single)
      .whole();
}

}  // namespace troupe::launch::tools::migration::shell
