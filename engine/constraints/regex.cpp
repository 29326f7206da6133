#include "engine/constraints/regex.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/constraints/character_set.h"
#include "engine/constraints/repetition.h"

namespace troupe::engine::constraints {

namespace {

using Node = Grammar::Node;

class RegexParser {
 public:
  RegexParser(Grammar& grammar, std::string_view pattern, TextForm form, RegexReading reading)
      : grammar_(grammar), pattern_(pattern), form_(form), reading_(reading) {}

  Node parse(Node from) {
    const Node end = alternatives(from, 0);
    if (!at_end()) malformed("a ) without (");
    return end;
  }

 private:
  [[noreturn]] void malformed(const std::string& what) const {
    throw Failure(Error{Errc::bad_input, cat("the regular expression has ", what, " at position ",
                                             at_, ": ", quote(pattern_))});
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    throw Failure(
        Error{Errc::unsupported, cat("the regular expression has ", what, " at position ", at_,
                                     ", which is not supported: ", quote(pattern_))});
  }

  bool at_end() const { return at_ >= pattern_.size(); }
  char peek() const { return at_end() ? '\0' : pattern_[at_]; }
  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_code_point() {
    const CodePoint next = code_point_at(pattern_, at_);
    at_ += next.size;
    return next.value;
  }

  Node alternatives(Node from, int depth) {
    if (depth > max_nesting) malformed(cat("groups nested deeper than ", max_nesting));
    const Node to = grammar_.add_node();
    do {
      const Node begin = grammar_.add_node();
      grammar_.add_empty(from, begin);
      grammar_.add_empty(sequence(begin, depth), to);
    } while (take("|"));
    return to;
  }

  Node sequence(Node from, int depth) {
    const std::size_t begin = at_;
    const bool part = reading_.anywhere && depth == 0;
    bool ends = false;
    if (part && peek() != '^') from = any_text(from);
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (peek() == '^') {
        if (at_ != begin || depth > 0) unsupported("^ that is not at the beginning");
        ++at_;
        continue;
      }
      if (peek() == '$') {
        ++at_;
        if (depth > 0 || (!at_end() && peek() != '|')) unsupported("$ that is not at the end");
        ends = true;
        continue;
      }
      from = repeated(from, depth);
    }
    return part && !ends ? any_text(from) : from;
  }

  Node any_text(Node from) {
    const Node loop = grammar_.add_node();
    grammar_.add_empty(from, loop);
    const auto any = CharacterSet().complement();
    grammar_.add_empty(add_code_points(grammar_, loop, any.ranges(), form_), loop);
    return loop;
  }

  /// An atom with its quantifier.
  Node repeated(Node from, int depth) {
    if (peek() == '*' || peek() == '+' || peek() == '?') malformed("a quantifier without an atom");
    if (take("(")) {
      const Grammar::Rule rule = grammar_.add_rule();
      grammar_.add_empty(group(grammar_.begin(rule), depth), grammar_.end(rule));
      const auto counts = quantifier();
      return counts ? add_repeated(grammar_, from, rule, *counts) : grammar_.call(from, rule);
    }
    const CharacterSet set = characters();
    const auto counts = quantifier();
    if (!counts) return add_code_points(grammar_, from, set.ranges(), form_);
    if (!counts->most && counts->least == 0) {  // without a rule, whose end would need a stack
      const Node loop = grammar_.add_node();
      grammar_.add_empty(from, loop);
      grammar_.add_empty(add_code_points(grammar_, loop, set.ranges(), form_), loop);
      return loop;
    }
    const Grammar::Rule rule = grammar_.add_rule();
    grammar_.add_empty(add_code_points(grammar_, grammar_.begin(rule), set.ranges(), form_),
                       grammar_.end(rule));
    return add_repeated(grammar_, from, rule, *counts);
  }

  std::optional<Repetitions> quantifier() {
    std::optional<Repetitions> out;
    if (take("*"))
      out = {0, std::nullopt};
    else if (take("+"))
      out = {1, std::nullopt};
    else if (take("?"))
      out = {0, 1};
    else if (peek() == '{')
      out = braces();
    if (out && peek() == '+') unsupported("a possessive quantifier");
    if (out) take("?");  // lazy: the same texts
    if (out && (peek() == '*' || peek() == '+' || peek() == '?'))
      malformed("two quantifiers in a row");
    return out;
  }

  std::optional<int> number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = 10 * value + (peek() - '0');
      if (value > max_repetitions) malformed(cat("a count above ", max_repetitions));
    }
    return value;
  }

  Repetitions braces() {
    ++at_;
    const auto low = number();
    if (!low) malformed("{ without a count; write \\{ for the character");
    Repetitions out{*low, *low};
    if (take(",")) out.most = number();
    if (!take("}")) malformed("{ without }");
    if (out.most && *out.most < out.least) malformed("a count whose ends are swapped");
    return out;
  }

  /// An atom that is no group.
  CharacterSet characters() {
    if (take("[")) return character_class();
    if (take(".")) {
      if (!reading_.ecma || reading_.widest) return CharacterSet::of({{'\n', '\n'}}).complement();
      return CharacterSet::of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).complement();
    }
    if (peek() == '\\') {
      const CharacterSet out = escape(false);
      return out.is_shorthand() && reading_.widest ? widened(out.ranges()) : out;
    }
    const char32_t value = take_code_point();
    return CharacterSet::of({{value, value}});
  }

  Node group(Node from, int depth) {
    if (take("?P<") || (peek() == '?' && !pattern_.substr(at_).starts_with("?:") && named())) {
      while (!at_end() && peek() != '>') ++at_;
      if (!take(">")) malformed("a group's name without >");
    } else if (peek() == '?' && !take("?:")) {
      unsupported("look-around, a flag or another group that begins with (?");
    }
    const Node end = alternatives(from, depth + 1);
    if (!take(")")) malformed("( without )");
    return end;
  }

  /// Whether (?<name> follows, as opposed to look-behind.
  bool named() const {
    const std::string_view rest = pattern_.substr(at_);
    return rest.starts_with("?<") && !rest.starts_with("?<=") && !rest.starts_with("?<!");
  }

  char32_t hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) malformed(cat("an escape that needs ", digits, " hexadecimal digits"));
      value = 16 * value + static_cast<char32_t>(digit);
    }
    return value;
  }

  /// The set of an escape sequence.
  CharacterSet escape(bool in_class) {
    ++at_;
    if (at_end()) malformed("a \\ without a character");
    const char32_t value = take_code_point();
    if (auto shorthand = CharacterSet::shorthand(value)) return *shorthand;
    const std::string_view names = "nrtfv0", values("\n\r\t\f\v\0", 6);
    char32_t out = value;
    if (value < 0x80 && names.find(static_cast<char>(value)) != std::string_view::npos)
      out = static_cast<unsigned char>(values[names.find(static_cast<char>(value))]);
    else if (value == 'x')
      out = hex(2);
    else if (value == 'u')
      out = hex(4);
    else if (value == 'b' && in_class)
      out = '\b';
    else if (value < 0x80 && std::isalnum(static_cast<int>(value)) != 0)
      unsupported(cat("the escape \\", static_cast<char>(value)));
    return CharacterSet::of({{out, out}});
  }

  CharacterSet character_class() {
    const bool negated = take("^");
    std::vector<CodePointRange> ranges;
    bool shorthand = false;
    for (bool first = true; first || peek() != ']'; first = false) {
      if (at_end()) malformed("[ without ]");
      grammar_.spend(1);
      const CharacterSet low = class_atom();
      shorthand = shorthand || low.is_shorthand();
      if (peek() != '-' || pattern_.substr(at_).starts_with("-]")) {
        ranges.insert(ranges.end(), low.ranges().begin(), low.ranges().end());
        continue;
      }
      ++at_;
      if (at_end()) malformed("[ without ]");
      const CharacterSet high = class_atom();
      if (!low.is_single() || !high.is_single()) malformed("a range whose end is not a character");
      if (high.single() < low.single()) malformed("a range whose ends are swapped");
      ranges.emplace_back(low.single(), high.single());
    }
    ++at_;
    if (!negated && shorthand && reading_.widest) return widened(ranges);
    const CharacterSet out = CharacterSet::of(std::move(ranges));
    if (!negated) return out;
    return shorthand && !reading_.widest ? out.ascii_complement() : out.complement();
  }

  /// With the characters that a shorthand has in some engines only.
  static CharacterSet widened(std::span<const CodePointRange> ranges) {
    std::vector<CodePointRange> all(ranges.begin(), ranges.end());
    all.insert(all.end(), {{0x1C, 0x1F}, {0x80, 0x10FFFF}});
    return CharacterSet::of(std::move(all));
  }

  CharacterSet class_atom() {
    if (peek() == '\\') return escape(true);
    const char32_t value = take_code_point();
    return CharacterSet::of({{value, value}});
  }

  Grammar& grammar_;
  std::string_view pattern_;
  TextForm form_;
  RegexReading reading_;
  std::size_t at_ = 0;
};

}  // namespace

Grammar::Node add_regex(Grammar& grammar, Grammar::Node from, std::string_view pattern,
                        TextForm form, RegexReading reading) {
  if (!valid_utf8(pattern))
    throw Failure(Error{Errc::bad_input, "the regular expression is not UTF-8"});
  return RegexParser(grammar, pattern, form, reading).parse(from);
}

}  // namespace troupe::engine::constraints
