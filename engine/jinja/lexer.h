// Lexer: template source to tokens, with Jinja2's rules for white space.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::engine::jinja {

struct Token {
  enum class Kind {
    text,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    real,
    op,
    end
  };
  Kind kind = Kind::end;
  std::string text;  ///< names, operators, digits; strings with their escapes undone
  int line = 1;
};

/// Settings of Jinja2's Environment; these defaults are those of transformers.
struct TemplateRules {
  bool trims_blocks = true;             ///< trim_blocks and lstrip_blocks
  bool keeps_trailing_newline = false;  ///< keep_trailing_newline
};

/// Throws Failure (Errc::bad_input) with the line.
std::vector<Token> tokenize(std::string source, TemplateRules rules = {});

/// A cursor over the tokens, shared by the statement and the expression parser.
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
  /// Consumes the operator if it is next.
  bool skip_op(std::string_view op);
  /// Consumes the name if it is next.
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect(Token::Kind kind, std::string_view what);
  [[noreturn]] void wrong(std::string_view what) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace troupe::engine::jinja
