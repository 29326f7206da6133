#include "launch/tools/migration/shell/scan.h"

#include <algorithm>
#include <cctype>

#include "launch/tools/migration/shell/limits.h"

namespace troupe::launch::tools::migration::shell {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::size_t part(std::size_t at) {
    const Level level(depth_, text_);
    const char c = text_[at];
    if (c == '\\') return std::min(at + 2, text_.size());
    if (c == '\'') return after('\'', at + 1);
    if (c == '"') return quoted(at + 1);
    if (c == '`') return backtick(at + 1);
    if (starts(at, "$'")) return dollar_quoted(at + 2);
    if (starts(at, "$\"")) return quoted(at + 2);
    if (starts(at, "${")) return closed(at + 2, '{', '}');
    if (starts(at, "$(") || starts(at, "<(") || starts(at, ">(")) return closed(at + 2, '(', ')');
    return at + 1;
  }

 private:
  bool starts(std::size_t at, std::string_view with) const {
    return text_.substr(at, with.size()) == with;
  }

  std::size_t after(char mark, std::size_t at) const {
    const auto end = text_.find(mark, at);
    return end == std::string_view::npos ? text_.size() : end + 1;
  }

  std::size_t dollar_quoted(std::size_t at) const {
    while (at < text_.size() && text_[at] != '\'') at += text_[at] == '\\' ? 2 : 1;
    return std::min(at + 1, text_.size());
  }

  std::size_t backtick(std::size_t at) const {
    while (at < text_.size() && text_[at] != '`') at += text_[at] == '\\' ? 2 : 1;
    return std::min(at + 1, text_.size());
  }

  std::size_t quoted(std::size_t at) {
    while (at < text_.size() && text_[at] != '"')
      at = text_[at] == '\\' || text_[at] == '$' || text_[at] == '`' ? part_in_quotes(at) : at + 1;
    return std::min(at + 1, text_.size());
  }

  /// $' and $" have no meaning within double quotation marks.
  std::size_t part_in_quotes(std::size_t at) {
    const bool plain = text_[at] == '$' && !starts(at, "${") && !starts(at, "$(");
    return plain ? at + 1 : part(at);
  }

  std::size_t closed(std::size_t at, char open, char close) {
    int depth = 1;
    while (at < text_.size()) {
      if (text_[at] == close && --depth == 0) return at + 1;
      // A brace within ${...} counts only as ${; parentheses count always.
      if (text_[at] == open && open == '(') ++depth;
      at = part(at);
    }
    return text_.size();
  }

  std::string_view text_;
  int depth_ = 0;
};

}  // namespace

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::size_t end_of_name(std::string_view text, std::size_t begin) {
  if (begin < text.size() && std::isdigit(static_cast<unsigned char>(text[begin]))) return begin;
  while (begin < text.size() && is_name_character(text[begin])) ++begin;
  return begin;
}

bool is_name(std::string_view text) {
  return !text.empty() && end_of_name(text, 0) == text.size();
}

std::size_t end_of_part(std::string_view text, std::size_t at) {
  return Scanner(text).part(at);
}

bool begins_substitution(std::string_view text, std::size_t at) {
  const std::string_view two = text.substr(at, 2);
  return two == "$(" || two == "${" || two == "<(" || two == ">(" || text.substr(at, 1) == "`";
}

}  // namespace troupe::launch::tools::migration::shell
