#include "launch/tools/migration/shell/parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/tools/migration/shell/lexer.h"
#include "launch/tools/migration/shell/limits.h"
#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {
namespace {

using NodeKind = Node::Kind;
using Words = std::initializer_list<std::string_view>;

constexpr std::array<std::string_view, 12> redirections{"<",  ">",  "<<", ">>", "<<-", "<<<",
                                                        "<&", ">&", "<>", ">|", "&>",  "&>>"};
constexpr std::array<std::string_view, 5> declarations{"export", "local", "declare", "typeset",
                                                       "readonly"};

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

class Parser {
 public:
  Parser(std::string_view text, std::size_t line) : lexer_(text, line) {}

  NodePointer script() {
    NodePointer all = list({});
    if (lexer_.peek().kind != Token::Kind::end) unexpected("a command");
    return all;
  }

 private:
  [[noreturn]] void unexpected(std::string_view expected) {
    const Token& token = lexer_.peek();
    throw Failure(
        {Errc::bad_input, cat("line ", token.word.line, ": expected ", expected, ", found ",
                              quote(token.word.raw, 60), "; check the script with bash -n")});
  }

  static NodePointer node(NodeKind kind, std::size_t line, std::vector<NodePointer> children) {
    Node out;
    out.kind = kind;
    out.line = line;
    out.children = std::move(children);
    return std::make_shared<const Node>(std::move(out));
  }

  void skip_newlines() {
    while (lexer_.peek().kind == Token::Kind::newline) lexer_.take();
  }

  bool at_word(Words words) {
    const Token& token = lexer_.peek();
    return token.kind == Token::Kind::word &&
           std::ranges::find(words, token.word.raw) != words.end();
  }

  void expect_word(std::string_view word) {
    skip_newlines();
    if (!lexer_.peek().is_word(word)) unexpected(word);
    lexer_.take();
  }

  void expect(std::string_view operation) {
    if (!lexer_.peek().is(operation)) unexpected(operation);
    lexer_.take();
  }

  bool at_end(Words until) {
    const Token& token = lexer_.peek();
    return token.kind == Token::Kind::end || token.is(")") || token.is(";;") || token.is(";&") ||
           token.is(";;&") || at_word(until);
  }

  /// Commands until one of these words, which stays.
  NodePointer list(Words until) {
    const Level level(depth_, "a command");
    std::vector<NodePointer> children;
    const std::size_t line = lexer_.peek().word.line;
    for (skip_newlines(); !at_end(until); skip_newlines()) {
      children.push_back(and_or());
      if (lexer_.peek().is(";") || lexer_.peek().is("&"))
        lexer_.take();
      else if (lexer_.peek().kind != Token::Kind::newline && !at_end(until))
        unexpected("the end of the command");
    }
    return node(NodeKind::sequence, line, std::move(children));
  }

  NodePointer and_or() {
    Node out;
    out.kind = NodeKind::and_or;
    out.line = lexer_.peek().word.line;
    out.children.push_back(pipeline());
    while (lexer_.peek().is("&&") || lexer_.peek().is("||")) {
      out.name += lexer_.take().word.raw[0];
      skip_newlines();
      out.children.push_back(pipeline());
    }
    if (out.children.size() == 1) return out.children[0];
    return std::make_shared<const Node>(std::move(out));
  }

  NodePointer pipeline() {
    Node out;
    out.kind = NodeKind::pipeline;
    out.line = lexer_.peek().word.line;
    while (at_word({"!", "time"})) out.negated ^= lexer_.take().is_word("!");
    out.children.push_back(command());
    while (lexer_.peek().is("|") || lexer_.peek().is("|&")) {
      lexer_.take();
      skip_newlines();
      out.children.push_back(command());
    }
    if (out.children.size() == 1 && !out.negated) return out.children[0];
    return std::make_shared<const Node>(std::move(out));
  }

  NodePointer command() {
    const Level level(depth_, lexer_.peek().word.raw);
    if (lexer_.peek().is("(")) return with_redirections(parenthesis());
    if (lexer_.peek().kind != Token::Kind::word) {
      if (!is_redirection()) unexpected("a command");
      return simple();
    }
    const std::string& word = lexer_.peek().word.raw;
    if (word == "if") return with_redirections(if_then());
    if (word == "case") return with_redirections(case_of());
    if (word == "for" || word == "select") return with_redirections(for_loop());
    if (word == "while" || word == "until") return with_redirections(while_loop());
    if (word == "{") return with_redirections(group());
    if (word == "[[") return with_redirections(test());
    if (word == "function") return function();
    for (const std::string_view each : {"then", "else", "elif", "fi", "do", "done", "esac", "}"})
      if (word == each) unexpected("a command");
    return simple();
  }

  /// Redirections of a compound command have no effect on values.
  NodePointer with_redirections(NodePointer command) {
    Node ignored;
    while (is_redirection() || at_descriptor())
      if (at_descriptor())
        lexer_.take();
      else
        redirection(ignored);
    return command;
  }

  NodePointer parenthesis() {
    const Token open = lexer_.take();
    if (open.before_paren) {
      if (auto expression = lexer_.arithmetic()) {
        Node out;
        out.kind = NodeKind::arithmetic;
        out.line = open.word.line;
        out.words.push_back(std::move(*expression));
        return std::make_shared<const Node>(std::move(out));
      }
    }
    NodePointer body = list({});
    expect(")");
    return node(NodeKind::subshell, open.word.line, {std::move(body)});
  }

  NodePointer group() {
    const Token open = lexer_.take();
    NodePointer body = list({"}"});
    expect_word("}");
    return node(NodeKind::group, open.word.line, {std::move(body)});
  }

  NodePointer if_then() {
    const Token open = lexer_.take();
    std::vector<NodePointer> children;
    for (;;) {
      children.push_back(list({"then"}));
      expect_word("then");
      children.push_back(list({"elif", "else", "fi"}));
      if (!at_word({"elif"})) break;
      lexer_.take();
    }
    if (at_word({"else"})) {
      lexer_.take();
      children.push_back(list({"fi"}));
    }
    expect_word("fi");
    return node(NodeKind::if_then, open.word.line, std::move(children));
  }

  NodePointer case_of() {
    Node out;
    out.kind = NodeKind::case_of;
    out.line = lexer_.take().word.line;
    out.words.push_back(lexer_.take().word);
    expect_word("in");
    for (skip_newlines(); !at_word({"esac"}); skip_newlines()) {
      if (lexer_.peek().kind == Token::Kind::end) unexpected("esac");
      arm(out);
    }
    lexer_.take();
    return std::make_shared<const Node>(std::move(out));
  }

  void arm(Node& out) {
    if (lexer_.peek().is("(")) lexer_.take();
    Node::Arm arm;
    for (;;) {
      if (lexer_.peek().kind != Token::Kind::word) unexpected("a pattern");
      arm.patterns.push_back(lexer_.take().word);
      if (!lexer_.peek().is("|")) break;
      lexer_.take();
    }
    expect(")");
    arm.body = out.children.size();
    out.children.push_back(list({"esac"}));
    const Token& after = lexer_.peek();
    arm.falls_through = after.is(";&") || after.is(";;&");
    if (after.is(";;") || arm.falls_through) lexer_.take();
    out.arms.push_back(std::move(arm));
  }

  NodePointer for_loop() {
    Node out;
    out.kind = NodeKind::for_each;
    out.line = lexer_.take().word.line;
    if (lexer_.peek().is("(") && lexer_.peek().before_paren) {
      lexer_.take();
      const auto header = lexer_.arithmetic();
      if (!header) unexpected("for (( ; ; ))");
      out.kind = NodeKind::for_arithmetic;
      for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
        end = header->raw.find(';', at);
        out.words.push_back({header->raw.substr(at, end - at), header->line});
      }
      if (out.words.size() != 3) unexpected("three expressions in for (( ; ; ))");
    } else {
      out.name = lexer_.take().word.raw;
      if (!is_name(out.name)) unexpected("the name of a variable");
      for_words(out);
    }
    if (lexer_.peek().is(";")) lexer_.take();
    expect_word("do");
    out.children.push_back(list({"done"}));
    expect_word("done");
    return std::make_shared<const Node>(std::move(out));
  }

  void for_words(Node& out) {
    skip_newlines();
    if (!at_word({"in"})) return;
    lexer_.take();
    out.has_list = true;
    while (lexer_.peek().kind == Token::Kind::word) out.words.push_back(lexer_.take().word);
  }

  NodePointer while_loop() {
    Node out;
    out.kind = NodeKind::while_loop;
    out.line = lexer_.peek().word.line;
    out.negated = lexer_.take().is_word("until");
    out.children.push_back(list({"do"}));
    expect_word("do");
    out.children.push_back(list({"done"}));
    expect_word("done");
    return std::make_shared<const Node>(std::move(out));
  }

  /// The words between [[ and ]], operators included.
  NodePointer test() {
    Node out;
    out.kind = NodeKind::test;
    out.line = lexer_.take().word.line;
    while (!at_word({"]]"})) {
      if (lexer_.peek().kind == Token::Kind::end) unexpected("]]");
      const Token token = lexer_.take();
      if (token.kind != Token::Kind::newline) out.words.push_back(token.word);
    }
    lexer_.take();
    return std::make_shared<const Node>(std::move(out));
  }

  NodePointer function() {
    lexer_.take();
    return function_named(lexer_.take().word);
  }

  NodePointer function_named(const Word& name) {
    if (lexer_.peek().is("(")) {
      lexer_.take();
      expect(")");
    }
    skip_newlines();
    Node out;
    out.kind = NodeKind::function;
    out.line = name.line;
    out.name = name.raw;
    out.children.push_back(command());
    return std::make_shared<const Node>(std::move(out));
  }

  bool is_redirection() {
    const Token& token = lexer_.peek();
    return token.kind == Token::Kind::operation &&
           std::ranges::find(redirections, token.word.raw) != redirections.end();
  }

  /// A number directly before a redirection belongs to it: 2>&1.
  bool at_descriptor() {
    const Token& token = lexer_.peek();
    return token.before_redirection && is_number(token.word.raw);
  }

  void redirection(Node& out) {
    const Token operation = lexer_.take();
    if (lexer_.peek().kind != Token::Kind::word) unexpected("a file");
    const Word target = lexer_.take().word;
    if (operation.is("<<") || operation.is("<<-"))
      out.here = lexer_.here_document(target, operation.is("<<-"));
  }

  NodePointer simple() {
    Node out;
    out.line = lexer_.peek().word.line;
    for (;;) {
      if (is_redirection()) {
        redirection(out);
        continue;
      }
      if (lexer_.peek().kind != Token::Kind::word) break;
      const bool descriptor = at_descriptor();
      const Token token = lexer_.take();
      if (descriptor) continue;
      auto assigned = assignment_of(token.word);
      const bool declares = !out.words.empty() &&
                            std::ranges::find(declarations, out.words[0].raw) != declarations.end();
      if (assigned && token.before_paren && assigned->value.raw.empty() &&
          (out.words.empty() || declares)) {
        array_items(*assigned);
        out.assignments.push_back(std::move(*assigned));
      } else if (assigned && out.words.empty()) {
        out.assignments.push_back(std::move(*assigned));
      } else if (token.before_paren && out.words.empty() && out.assignments.empty()) {
        return function_named(token.word);
      } else {
        out.words.push_back(token.word);
      }
    }
    return std::make_shared<const Node>(std::move(out));
  }

  void array_items(Assignment& assignment) {
    expect("(");
    assignment.array = true;
    for (skip_newlines(); !lexer_.peek().is(")"); skip_newlines()) {
      if (lexer_.peek().kind != Token::Kind::word) unexpected(") at the end of the array");
      assignment.items.push_back(lexer_.take().word);
    }
    lexer_.take();
  }

  Lexer lexer_;
  int depth_ = 0;
};

}  // namespace

std::optional<Assignment> assignment_of(const Word& word) {
  const std::string_view raw = word.raw;
  std::size_t at = end_of_name(raw, 0);
  if (at == 0) return std::nullopt;
  Assignment out;
  out.name = raw.substr(0, at);
  if (at < raw.size() && raw[at] == '[') {
    const std::size_t begin = at + 1;
    while (at < raw.size() && raw[at] != ']') at = end_of_part(raw, at);
    if (at >= raw.size()) return std::nullopt;
    out.index = Word{std::string(raw.substr(begin, at - begin)), word.line};
    ++at;
  }
  out.append = raw.substr(at, 2) == "+=";
  if (!out.append && raw.substr(at, 1) != "=") return std::nullopt;
  out.value = {std::string(raw.substr(at + (out.append ? 2 : 1))), word.line};
  return out;
}

NodePointer parse_script(std::string_view text, std::size_t first_line) {
  return Parser(text, first_line).script();
}

}  // namespace troupe::launch::tools::migration::shell
