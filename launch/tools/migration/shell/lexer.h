// The tokens of a bash script.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/migration/shell/syntax.h"

namespace troupe::launch::tools::migration::shell {

struct Token {
  enum class Kind { word, operation, newline, end };
  Kind kind = Kind::end;
  Word word;                        ///< the word, or the operation
  bool before_paren = false;        ///< an opening parenthesis follows without a blank
  bool before_redirection = false;  ///< of a word: < or > follows without a blank

  bool is(std::string_view operation) const {
    return kind == Kind::operation && word.raw == operation;
  }
  bool is_word(std::string_view text) const { return kind == Kind::word && word.raw == text; }
};

class Lexer {
 public:
  /// `text` must outlive the lexer.
  Lexer(std::string_view text, std::size_t first_line);

  const Token& peek();
  Token take();
  /// What is between `((`, whose first parenthesis was just taken, and `))`; nullopt, and nothing
  /// taken, if these are two subshells.
  std::optional<Word> arithmetic();
  /// The document with this delimiter, which begins after the line.
  HereDocument here_document(const Word& delimiter, bool strips_tabs);

 private:
  Token next();
  void skip_blanks();
  Token operation(std::size_t length);
  Token word();
  std::size_t line_of(std::size_t at) const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::size_t> newlines_;  ///< offsets
  std::size_t first_line_;
  std::optional<Token> ahead_;
  std::size_t here_end_ = 0;  ///< of the here-documents after this line
};

}  // namespace troupe::launch::tools::migration::shell
