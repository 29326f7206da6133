#include "engine/constraints/ebnf.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/constraints/character_set.h"
#include "engine/constraints/code_points.h"
#include "engine/constraints/repetition.h"

namespace troupe::engine::constraints {

namespace {

using Node = Grammar::Node;
using Rule = Grammar::Rule;

class EbnfParser {
 public:
  EbnfParser(Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text) {}

  Rule parse() {
    for (skip(true); !at_end(); skip(true)) read_rule();
    for (const auto& [name, rule] : rules_)
      if (!defined_.contains(name)) mistake(cat("the rule ", quote(name), " is not defined"));
    if (!defined_.contains("root")) mistake("there is no rule \"root\"");
    return rules_.at("root");
  }

 private:
  [[noreturn]] void mistake(const std::string& what) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
    throw Failure(Error{Errc::bad_input, cat("the grammar, line ", line, ": ", what)});
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(std::string_view wanted) {
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  }

  /// Skips spaces and comments; line ends, too, if `lines`.
  void skip(bool lines) {
    while (!at_end()) {
      if (peek() == '#')
        while (!at_end() && peek() != '\n') ++at_;
      else if (peek() == ' ' || peek() == '\t' || (lines && (peek() == '\n' || peek() == '\r')))
        ++at_;
      else
        return;
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (is_name(peek())) ++at_;
    if (at_ == begin) mistake(cat("expected a name, found ", quote(text_.substr(at_, 1))));
    return std::string(text_.substr(begin, at_ - begin));
  }

  Rule rule_of(const std::string& name) {
    const auto found = rules_.find(name);
    return found != rules_.end() ? found->second
                                 : rules_.emplace(name, grammar_.add_rule()).first->second;
  }

  void read_rule() {
    const std::string left = name();
    skip(false);
    if (!take("::=")) mistake(cat("expected ::= behind ", quote(left)));
    if (!defined_.insert(left).second) mistake(cat("the rule ", quote(left), " is defined twice"));
    const Rule rule = rule_of(left);
    grammar_.add_empty(alternatives(grammar_.begin(rule), 0), grammar_.end(rule));
    if (!at_end() && peek() != '\n' && peek() != '\r')
      mistake(cat("expected the end of the rule, found ", quote(text_.substr(at_, 1))));
  }

  Node alternatives(Node from, int depth) {
    if (depth > max_nesting) mistake(cat("groups nested deeper than ", max_nesting));
    const Node to = grammar_.add_node();
    do {
      skip(true);
      const Node begin = grammar_.add_node();
      grammar_.add_empty(from, begin);
      grammar_.add_empty(sequence(begin, depth), to);
    } while (take("|"));
    return to;
  }

  /// Outside of groups it ends at a line end.
  Node sequence(Node from, int depth) {
    for (skip(depth > 0); !at_end(); skip(depth > 0)) {
      if (peek() == '|' || peek() == ')' || peek() == '\n' || peek() == '\r') break;
      const Rule rule = grammar_.add_rule();
      grammar_.add_empty(item(grammar_.begin(rule), depth), grammar_.end(rule));
      from = quantified(from, rule, depth > 0);
    }
    return from;
  }

  Node item(Node from, int depth) {
    if (take("(")) {
      const Node end = alternatives(from, depth + 1);
      if (!take(")")) mistake("( without )");
      return end;
    }
    if (take("\"")) return literal(from);
    if (take("["))
      return add_code_points(grammar_, from, character_class().ranges(), TextForm::plain);
    if (take(".")) {
      const std::vector<CodePointRange> all = {{0, 0x10FFFF}};
      return add_code_points(grammar_, from, all, TextForm::plain);
    }
    return grammar_.call(from, rule_of(name()));
  }

  /// Spaces may stand before a repetition and in its braces; line ends, too, if `lines`.
  Node quantified(Node from, Rule rule, bool lines) {
    skip(lines);
    if (take("*")) return add_repeated(grammar_, from, rule, {0, std::nullopt});
    if (take("+")) return add_repeated(grammar_, from, rule, {1, std::nullopt});
    if (take("?")) return add_repeated(grammar_, from, rule, {0, 1});
    if (!take("{")) return grammar_.call(from, rule);
    skip(lines);
    Repetitions counts;
    counts.least = number(lines);
    counts.most = counts.least;
    if (take(",")) {
      skip(lines);
      counts.most = peek() == '}' ? std::nullopt : std::optional(number(lines));
    }
    if (!take("}")) mistake("{ without }");
    if (counts.most && *counts.most < counts.least) mistake("a count whose ends are swapped");
    return add_repeated(grammar_, from, rule, counts);
  }

  /// And the spaces behind it.
  int number(bool lines) {
    int value = 0;
    const std::size_t begin = at_;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = 10 * value + (peek() - '0');
      if (value > max_repetitions) mistake(cat("a count above ", max_repetitions));
    }
    if (at_ == begin) mistake("{ without a count");
    skip(lines);
    return value;
  }

  Node literal(Node from) {
    std::string bytes;
    while (!take("\"")) {
      if (at_end() || peek() == '\n') mistake("\" without \"");
      append_utf8(bytes, character());
    }
    return grammar_.text(from, bytes);
  }

  CharacterSet character_class() {
    const bool negated = take("^");
    std::vector<CodePointRange> ranges;
    while (!take("]")) {
      grammar_.spend(1);
      if (at_end() || peek() == '\n') mistake("[ without ]");
      const char32_t low = character();
      char32_t high = low;
      if (peek() == '-' && !text_.substr(at_).starts_with("-]")) {
        ++at_;
        if (at_end()) mistake("[ without ]");
        high = character();
      }
      if (high < low) mistake("a range whose ends are swapped");
      ranges.emplace_back(low, high);
    }
    const CharacterSet out = CharacterSet::of(std::move(ranges));
    return negated ? out.complement() : out;
  }

  char32_t character() {
    if (!take("\\")) {
      const CodePoint next = code_point_at(text_, at_);
      at_ += next.size;
      return next.value;
    }
    const char escape = peek();
    ++at_;
    switch (escape) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        break;
    }
    if (std::string_view("\\\"[]-^/'").find(escape) == std::string_view::npos)
      mistake(cat("the escape \\", quote(std::string(1, escape)), " is unknown"));
    return static_cast<unsigned char>(escape);
  }

  char32_t hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const auto c = static_cast<unsigned char>(peek());
      if (std::isxdigit(c) == 0) mistake(cat("an escape needs ", digits, " hexadecimal digits"));
      const int digit = std::isdigit(c) != 0 ? c - '0' : std::tolower(c) - 'a' + 10;
      value = 16 * value + static_cast<char32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      mistake("an escape that is no character");
    return value;
  }

  Grammar& grammar_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::map<std::string, Rule> rules_;
  std::set<std::string> defined_;
};

}  // namespace

Grammar::Rule add_ebnf(Grammar& grammar, std::string_view text) {
  if (!valid_utf8(text)) throw Failure(Error{Errc::bad_input, "the grammar is not UTF-8"});
  return EbnfParser(grammar, text).parse();
}

}  // namespace troupe::engine::constraints
