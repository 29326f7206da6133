// ExpressionParser: tokens to syntax tree, by recursive descent over Jinja2's grammar
// (jinja2/parser.py).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/jinja/ast.h"
#include "engine/jinja/lexer.h"

namespace troupe::engine::jinja {

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
  /// Inside an `if` (but not in a loop, macro or the like inside it) unknown filters and tests are
  /// errors only when they are used.
  bool lenient = false;
  /// Message about the first unknown filter or test elsewhere; empty if there is none.
  std::string unknown;
  /// True once the source has named the special variable of macros.
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

/// Bounds the recursion and thereby the C++ stack.
class ExpressionParser::Depth {
  static constexpr int max_depth = 100;

 public:
  explicit Depth(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > max_depth)
      parser_.cursor_.wrong(cat("expressions nested deeper than ", max_depth));
  }
  ~Depth() { --parser_.depth_; }
  Depth(const Depth&) = delete;

 private:
  ExpressionParser& parser_;
};

}  // namespace troupe::engine::jinja
