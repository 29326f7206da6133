// Tokens to a syntax tree: a recursive descent over Jinja2's grammar (jinja2/parser.py).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "engine/base/text.h"
#include "engine/jinja/ast.h"
#include "engine/jinja/lexer.h"

namespace troupe::engine::jinja {

/// The cursor over the tokens that both halves of the parser share.
class TokenCursor {
 public:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token next() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_.back(); }
  bool is_op(std::string_view op) const {
    return peek().kind == Token::Kind::op && peek().text == op;
  }
  bool is_name(std::string_view name) const {
    return peek().kind == Token::Kind::name && peek().text == name;
  }
  bool skip_op(std::string_view op) { return is_op(op) && (next(), true); }
  bool skip_name(std::string_view name) { return is_name(name) && (next(), true); }
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect(Token::Kind kind, std::string_view what);
  [[noreturn]] void wrong(std::string_view what) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenCursor& cursor) : cursor_(cursor) {}
  ExprPtr expression();  ///< with "a if b else c"
  ExprPtr tuple(bool conditional,
                std::string_view until_name = "");  ///< one expression, or several with commas
  ExprPtr target();                                 ///< names with commas, or namespace.attribute
  ExprPtr filters(ExprPtr start,
                  bool first_without_pipe);  ///< | filter | filter, tests and calls after them
  std::vector<Parameter> parameters();       ///< (a, b=1)
  ExprPtr unary(bool with_filters);
  /// Inside an `if` (and not in a loop, macro or the like inside it) filters and tests may be
  /// unknown until they are used.
  bool lenient = false;
  /// What is wrong with the first unknown one elsewhere; empty: nothing.
  std::string unknown;
  /// Names that the source asked for so far, among those that macros treat apart.
  bool caller_named = false, kwargs_named = false, varargs_named = false;

 private:
  class Depth;
  ExprPtr make(Expr::Kind kind, std::string text = "") const;
  ExprPtr grown(ExprPtr expr) const;  ///< with its height; refuses too high a tree
  ExprPtr binary_chain(ExprPtr (ExpressionParser::*operand)(),
                       std::initializer_list<std::string_view> operators);
  ExprPtr logical_or();
  ExprPtr logical_and();
  ExprPtr logical_not();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr primary();
  ExprPtr literal();
  ExprPtr name_or_constant();
  ExprPtr brackets(std::string_view close, Expr::Kind kind);
  ExprPtr dict();
  ExprPtr postfix(ExprPtr start);
  ExprPtr subscript(ExprPtr object);
  ExprPtr subscribed();
  ExprPtr call(ExprPtr callee);
  void arguments(Expr& into);
  ExprPtr filter(ExprPtr start);
  void expect_known(bool known, std::string_view what, const std::string& name);
  ExprPtr test(ExprPtr start);
  std::string dotted_name();
  bool at_tuple_end(std::string_view until_name) const;

  TokenCursor& cursor_;
  int depth_ = 0;
};

/// Bounds the recursion, and with it the C++ stack.
class ExpressionParser::Depth {
  static constexpr int deepest = 100;

 public:
  explicit Depth(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > deepest)
      parser_.cursor_.wrong(cat("expressions nested deeper than ", deepest));
  }
  ~Depth() { --parser_.depth_; }
  Depth(const Depth&) = delete;

 private:
  ExpressionParser& parser_;
};

/// The whole template. Throws Failure (Errc::bad_input) with the line.
Block parse_template(std::string source);

}  // namespace troupe::engine::jinja
