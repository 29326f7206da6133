#include "launch/tools/migration/shell/lexer.h"

#include <algorithm>
#include <array>

#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {
namespace {

constexpr std::array<std::string_view, 23> token_operations{
    ";;&", "<<<", "<<-", "&>>", "&&", "||", "|&", ";;", ";&", "<<", ">>", "<&",
    ">&",  "<>",  ">|",  "&>",  ";",  "&",  "|",  "(",  ")",  "<",  ">"};

bool ends_word(char c) {
  return is_blank(c) || c == '\n' || std::string_view(";&|<>()").find(c) != std::string_view::npos;
}

/// The delimiter of a here-document without its quotation marks.
std::string unquoted(std::string_view raw) {
  std::string out(raw);
  std::erase_if(out, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
  return out;
}

}  // namespace

Lexer::Lexer(std::string_view text, std::size_t first_line) : text_(text), first_line_(first_line) {
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
    newlines_.push_back(at);
}

std::size_t Lexer::line_of(std::size_t at) const {
  return first_line_ +
         static_cast<std::size_t>(std::ranges::lower_bound(newlines_, at) - newlines_.begin());
}

const Token& Lexer::peek() {
  if (!ahead_) ahead_ = next();
  return *ahead_;
}

Token Lexer::take() {
  Token token = ahead_ ? std::move(*ahead_) : next();
  ahead_.reset();
  return token;
}

void Lexer::skip_blanks() {
  while (at_ < text_.size())
    if (is_blank(text_[at_]))
      ++at_;
    else if (text_.substr(at_, 2) == "\\\n")
      at_ += 2;
    else
      break;
  if (at_ < text_.size() && text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
}

Token Lexer::operation(std::size_t length) {
  Token token{Token::Kind::operation, {std::string(text_.substr(at_, length)), line_of(at_)}};
  at_ += length;
  token.before_paren = at_ < text_.size() && text_[at_] == '(';
  return token;
}

Token Lexer::word() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && !ends_word(text_[at_])) at_ = end_of_part(text_, at_);
  const std::string_view raw = text_.substr(begin, at_ - begin);
  Token token{Token::Kind::word, {std::string(raw), line_of(begin)}};
  token.before_paren = at_ < text_.size() && text_[at_] == '(';
  token.before_redirection = at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>');
  return token;
}

Token Lexer::next() {
  skip_blanks();
  if (at_ >= text_.size()) return {Token::Kind::end, {"the end of the script", line_of(at_)}};
  if (text_[at_] == '\n') {
    Token token{Token::Kind::newline, {"the end of the line", line_of(at_)}};
    at_ = here_end_ > at_ ? here_end_ : at_ + 1;
    return token;
  }
  // Process substitution is a word.
  if (text_.substr(at_, 2) == "<(" || text_.substr(at_, 2) == ">(") {
    const std::size_t begin = at_;
    at_ = end_of_part(text_, at_);
    return {Token::Kind::word, {std::string(text_.substr(begin, at_ - begin)), line_of(begin)}};
  }
  for (const std::string_view each : token_operations)
    if (text_.substr(at_, each.size()) == each) return operation(each.size());
  return word();
}

std::optional<Word> Lexer::arithmetic() {
  int depth = 0;
  for (std::size_t at = at_ + 1; at < text_.size(); at = end_of_part(text_, at)) {
    if (text_[at] == '(') ++depth;
    if (text_[at] != ')' || depth-- > 0) continue;
    if (text_.substr(at, 2) != "))") return std::nullopt;
    Word word{std::string(text_.substr(at_ + 1, at - at_ - 1)), line_of(at_)};
    at_ = at + 2;
    return word;
  }
  return std::nullopt;
}

HereDocument Lexer::here_document(const Word& delimiter, bool strips_tabs) {
  const std::string end = unquoted(delimiter.raw);
  if (here_end_ <= at_) here_end_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
  HereDocument out{{"", line_of(here_end_)}, end != delimiter.raw};
  while (here_end_ < text_.size()) {
    const std::size_t stop = std::min(text_.find('\n', here_end_), text_.size());
    std::string_view line = text_.substr(here_end_, stop - here_end_);
    here_end_ = std::min(stop + 1, text_.size());
    while (strips_tabs && line.starts_with('\t')) line.remove_prefix(1);
    if (line == end) break;
    out.text.raw.append(line).append("\n");
  }
  return out;
}

}  // namespace troupe::launch::tools::migration::shell
