#include "engine/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "engine/base/text/character_classes.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/repr.h"
#include "engine/jinja/value.h"

namespace troupe::engine::jinja {

namespace {

bool ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}

// \r\n and \r become \n; one newline at the very end is removed, unless it is kept.
std::string normal_newlines(const std::string& source, bool keeps_last) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (!keeps_last && out.ends_with('\n')) out.pop_back();
  return out;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    std::size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!ascii_space(text[at]) && !is_whitespace(code_point_at(text, at).value)) break;
    text = text.substr(0, at);
  }
  return text;
}

char32_t code_point_of_escape(std::string_view digits, std::size_t wanted, int base, int line) {
  std::size_t used = 0;
  unsigned long value = 0;
  try {
    value = std::stoul(std::string(digits), &used, base);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != wanted || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    raise(cat("line ", line, ": the escape \\", quote(digits), " is no character"));
  return static_cast<char32_t>(value);
}

// The characters of a string literal of the source, without its quotes. Throws Failure with `line`.
std::string unescape_literal(std::string_view text, int line) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    constexpr std::string_view names = "ntr\\'\"abfv", meanings = "\n\t\r\\'\"\a\b\f\v";
    const std::size_t hex_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (const auto known = names.find(c); known != std::string_view::npos) {
      out += meanings[known];
    } else if (hex_digits) {
      append_utf8(out, code_point_of_escape(text.substr(std::min(i + 1, text.size()), hex_digits),
                                            hex_digits, 16, line));
      i += hex_digits;
    } else if (c >= '0' && c <= '7') {
      std::size_t count = 1;
      while (count < 3 && i + count < text.size() && text[i + count] >= '0' &&
             text[i + count] <= '7')
        ++count;
      append_utf8(out, code_point_of_escape(text.substr(i, count), count, 8, line));
      i += count - 1;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      const CodePoint point = code_point_at(
          text,
          i);  // jinja2 escapes what is beyond ASCII first, so the backslash meets its own kind
      out += to_ascii(std::string(text.substr(i, point.size))).substr(1);
      out.pop_back();
      i += point.size - 1;
    } else if (c == 'N') {
      raise(cat("line ", line, ": characters by name (\\N) are not read"));
    } else if (c != '\n') {
      out += '\\';
      out += c;
    }
  }
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, TemplateRules rules) : in_(source), rules_(rules) {}

  std::vector<Token> run() {
    while (at_ < in_.size()) text();
    out_.push_back({Token::Kind::end, "", line_});
    return std::move(out_);
  }

 private:
  using Kind = Token::Kind;

  [[noreturn]] void wrong(const std::string& what) const { raise(cat("line ", line_, ": ", what)); }
  bool at(std::string_view what) const { return in_.substr(at_).starts_with(what); }
  void add(Kind kind, std::string text) { out_.push_back({kind, std::move(text), line_}); }
  void advance(std::size_t count) {
    line_ +=
        static_cast<int>(std::count(in_.begin() + static_cast<std::ptrdiff_t>(at_),
                                    in_.begin() + static_cast<std::ptrdiff_t>(at_ + count), '\n'));
    at_ += count;
  }
  void skip_space() {
    while (at_ < in_.size()) {
      const CodePoint point = code_point_at(in_, at_);
      if (!ascii_space(in_[at_]) && !is_whitespace(point.value)) return;
      advance(point.size);
    }
  }

  // Plain text up to the next {{, {% or {#, stripped as the tag's sign and lstrip_blocks require;
  // then the tag.
  void text() {
    std::size_t next = in_.find('{', at_);
    while (next != std::string_view::npos &&
           (next + 1 >= in_.size() ||
            (in_[next + 1] != '{' && in_[next + 1] != '%' && in_[next + 1] != '#')))
      next = in_.find('{', next + 1);
    if (next == std::string_view::npos) {
      add_text(in_.substr(at_));
      return advance(in_.size() - at_);
    }
    const char kind = in_[next + 1];
    const char sign = next + 2 < in_.size() ? in_[next + 2] : '\0';
    add_text(before_tag(in_.substr(at_, next - at_), sign, kind != '{'));
    advance(next - at_ + 2);
    if (sign == '-' || sign == '+') advance(1);
    if (kind == '#') return comment();
    if (kind == '%' && raw()) return;
    tag(kind == '%');
  }

  std::string_view before_tag(std::string_view text, char sign, bool strips) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || !strips || !rules_.trims_blocks) return text;
    const auto newline = text.rfind('\n');
    if (newline == std::string_view::npos && !line_start_) return text;
    const std::size_t from = newline == std::string_view::npos ? 0 : newline + 1;
    return strip_right(text.substr(from)).empty() ? text.substr(0, from) : text;
  }

  void add_text(std::string_view text) {
    if (!text.empty()) add(Kind::text, std::string(text));
  }

  // Handles white space after a tag to which trim_blocks applies: removes one newline, or all white
  // space after a minus, or nothing after a plus.
  void after_tag(char sign, bool trims) {
    const std::size_t from = at_;
    if (sign == '-')
      skip_space();
    else if (sign != '+' && trims && rules_.trims_blocks && at("\n"))
      advance(1);
    line_start_ = at_ > from && in_[at_ - 1] == '\n';
  }

  void comment() {
    if (at_ == in_.size()) return;  // as in jinja2, an opening at the very end opens nothing
    const auto end = in_.find("#}", at_);
    if (end == std::string_view::npos) wrong("a comment {# that does not end");
    const char sign = end > at_ ? in_[end - 1] : '\0';
    advance(end + 2 - at_);
    after_tag(sign, true);
  }

  // {% raw %} ... {% endraw %}
  bool raw() {
    std::size_t at = at_;
    const auto skip = [&] {
      while (at < in_.size() && ascii_space(in_[at])) ++at;
    };
    const auto word = [&](std::string_view wanted) {
      return in_.substr(at).starts_with(wanted) ? (at += wanted.size(), true) : false;
    };
    skip();
    if (!word("raw")) return false;
    skip();
    const bool minus = word("-");
    if (!word("%}")) return false;
    if (minus) skip();
    const std::size_t begin = at;
    if (begin == in_.size()) {
      advance(begin - at_);
      return true;
    }
    for (std::size_t open = in_.find("{%", begin); open != std::string_view::npos;
         open = in_.find("{%", open + 1)) {
      at = open + 2;
      const char sign = at < in_.size() ? in_[at] : '\0';
      if (sign == '-' || sign == '+') ++at;
      skip();
      if (!word("endraw")) continue;
      skip();
      const char end_sign = at < in_.size() ? in_[at] : '\0';
      if (end_sign == '-' || end_sign == '+') ++at;
      if (!word("%}")) continue;
      line_start_ = begin > 0 && in_[begin - 1] == '\n';
      add_text(before_tag(in_.substr(begin, open - begin), sign, true));
      advance(at - at_);
      after_tag(end_sign, true);
      return true;
    }
    wrong("{% raw %} without {% endraw %}");
  }

  void tag(bool block) {
    add(block ? Kind::block_begin : Kind::variable_begin, "");
    const std::string_view end = block ? "%}" : "}}";
    std::string open;  // brackets not yet closed: inside them an end is not one
    for (;;) {
      skip_space();
      if (at_ >= in_.size())
        wrong(block ? "a tag {% that does not end" : "an expression {{ that does not end");
      const char sign = in_[at_];
      const bool signed_end =
          (sign == '-' || (sign == '+' && block)) && in_.substr(at_ + 1).starts_with(end);
      if (open.empty() && (at(end) || signed_end)) {
        advance(end.size() + (signed_end ? 1 : 0));
        add(block ? Kind::block_end : Kind::variable_end, "");
        return after_tag(signed_end ? sign : '\0', block);
      }
      expression_token(open);
    }
  }

  void expression_token(std::string& open) {
    const char c = in_[at_];
    if (c == '\'' || c == '"') return string(c);
    if (digit(c)) return number();
    const CodePoint point = code_point_at(in_, at_);
    if (is_word(point.value)) {
      std::size_t end = at_;
      while (end < in_.size() && is_word(code_point_at(in_, end).value))
        end += utf8_length(in_[end]);
      add(Kind::name, std::string(in_.substr(at_, end - at_)));
      return advance(end - at_);
    }
    constexpr std::array<std::string_view, 25> operators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};
    for (const auto op : operators) {
      if (!at(op)) continue;
      if (op == "(" || op == "[" || op == "{") open += c;
      if (op == ")" || op == "]" || op == "}") {
        if (open.empty() || (open.back() == '(' ? ')' : open.back() == '[' ? ']' : '}') != c)
          wrong(cat("unexpected '", c, "'"));
        open.pop_back();
      }
      add(Kind::op, std::string(op));
      return advance(op.size());
    }
    wrong(cat("unexpected character ", quote(in_.substr(at_, point.size))));
  }

  // The end of the digits of `base` from `end`, single underscores between them.
  std::size_t digits_end(std::size_t end, int base = 10) const {
    const auto fits = [&](std::size_t at) {
      const char c = at < in_.size() ? in_[at] : '\0';
      return digit(c) ? c - '0' < base : base == 16 && std::isxdigit(static_cast<unsigned char>(c));
    };
    while (fits(end) || (end < in_.size() && in_[end] == '_' && fits(end + 1))) ++end;
    return end;
  }

  // 1.5, 1e3, 1_0.5e-3; what stands behind a point is no such number but an index (x.0.1).
  std::size_t real_end() const {
    if (at_ > 0 && in_[at_ - 1] == '.') return at_;
    std::size_t end = digits_end(at_);
    const std::size_t whole = end;
    if (end + 1 < in_.size() && in_[end] == '.' && digit(in_[end + 1])) end = digits_end(end + 1);
    if (end < in_.size() && (in_[end] == 'e' || in_[end] == 'E')) {
      const std::size_t sign =
          end + 1 < in_.size() && (in_[end + 1] == '+' || in_[end + 1] == '-') ? 1 : 0;
      if (end + 1 + sign < in_.size() && digit(in_[end + 1 + sign]))
        end = digits_end(end + 1 + sign);
    }
    return end > whole ? end : at_;
  }

  // 12, 0x1F, 0o17, 0b11, 000; 012 is 0 and then 12.
  std::size_t integer_end(int& base) const {
    const char mark = in_[at_] == '0' && at_ + 1 < in_.size()
                          ? static_cast<char>(std::tolower(in_[at_ + 1]))
                          : '\0';
    base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    const std::size_t end = digits_end(base == 10 ? at_ : at_ + 2, base);
    if (base != 10 && end > at_ + 2) return end;
    base = 10;
    return in_[at_] == '0' ? digits_end(at_, 1) : digits_end(at_);
  }

  void number() {
    int base = 10;
    const std::size_t real = real_end();
    const std::size_t end = real > at_ ? real : integer_end(base);
    std::string text(in_.substr(at_, end - at_));
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    if (base != 10) {
      if (text.size() > 60) wrong("an integer that does not fit 64 bits");
      errno = 0;
      text = std::to_string(std::strtoull(text.c_str() + 2, nullptr, base));
      if (errno) wrong("an integer that does not fit 64 bits");
    }
    add(real > at_ ? Kind::real : Kind::integer, text);
    advance(end - at_);
  }

  void string(char quote_mark) {
    std::size_t end = at_ + 1;
    while (end < in_.size() && in_[end] != quote_mark) end += in_[end] == '\\' ? 2 : 1;
    if (end >= in_.size()) wrong("a string that does not end");
    add(Kind::string, unescape_literal(in_.substr(at_ + 1, end - at_ - 1), line_));
    advance(end + 1 - at_);
  }

  std::string_view in_;
  TemplateRules rules_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;  // what was consumed last ends a line
  std::vector<Token> out_;
};

}  // namespace

std::vector<Token> tokenize(std::string source, TemplateRules rules) {
  const std::string text = normal_newlines(source, rules.keeps_trailing_newline);
  return Lexer(text, rules).run();
}

bool TokenCursor::skip_op(std::string_view op) {
  if (!is_op(op)) return false;
  next();
  return true;
}
bool TokenCursor::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  next();
  return true;
}
void TokenCursor::wrong(std::string_view what) const {
  raise(cat("line ", peek().line, ": ", what));
}
void TokenCursor::expect_op(std::string_view op) {
  if (!skip_op(op))
    wrong(cat("expected '", op, "', found ",
              peek().kind == Token::Kind::end ? "the end" : quote(peek().text)));
}
std::string TokenCursor::expect_name() {
  if (peek().kind != Token::Kind::name) wrong(cat("expected a name, found ", quote(peek().text)));
  return next().text;
}
void TokenCursor::expect(Token::Kind kind, std::string_view what) {
  if (peek().kind != kind) wrong(cat("expected ", what, ", found ", quote(peek().text)));
  next();
}

}  // namespace troupe::engine::jinja
