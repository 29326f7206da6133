#include "engine/tokenizer/base/oniguruma.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cctype>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::string_view space_class =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view word_class =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

/// POSIX brackets, and the properties of the same names (lower case, without separators), of which
/// some have other members.
struct NamedClass {
  std::string_view name, members, of_property = {};
};
/// \w inside a class and [[:word:]] lack the superscript digits and fractions.
constexpr std::string_view word_bracket =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
constexpr NamedClass named_classes[] = {
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"lower", R"(\p{Lowercase})"},
    {"upper", R"(\p{Uppercase})"},
    {"punct", R"(\p{P}\p{S})", R"(\p{P})"},
    {"space", space_class},
    {"word", word_bracket, word_class},
    {"digit", R"(\p{Nd})"},
    {"xdigit", "0-9a-fA-F"},
    {"cntrl", R"(\p{Cc})"},
    {"blank", R"(\p{Zs}\t)"},
    {"ascii", R"(\x00-\x7f)"},
    {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})"},
    {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs})"}};

// The name of a property for PCRE2, in which a script's name alone stands for its extensions too.
std::string translated_property(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& named : named_classes)
    if (named.name == plain) return plain;
  const std::string text(name);
  const auto category = u_getPropertyValueEnum(UCHAR_GENERAL_CATEGORY_MASK, text.c_str());
  if (category != UCHAR_INVALID_CODE)
    return u_getPropertyValueName(UCHAR_GENERAL_CATEGORY_MASK, category, U_SHORT_PROPERTY_NAME);
  if (u_getPropertyValueEnum(UCHAR_SCRIPT, text.c_str()) != UCHAR_INVALID_CODE)
    return cat("sc:", name);
  return text;
}

class Translator {
 public:
  Translator(std::string_view in, std::string_view where) : in_(in), where_(where) {}

  Result<std::string> run() {
    while (at_ < in_.size() && problem_.empty()) step();
    if (!problem_.empty())
      return fail(Errc::unsupported, cat(where_, ": the regular expression ", quote(in_), " uses ",
                                         problem_, ", which troupe does not translate"));
    return std::move(out_);
  }

 private:
  void step() {
    const char c = in_[at_];
    if (c == '\\') {
      atom_ = out_.size();
      escape(false);
    } else if (c == '[') {
      atom_ = out_.size();
      char_class();
    } else if (c == '(') {
      groups_.push_back({out_.size(), ignores_case_});
      open_group();
    } else if (c == ')') {
      if (!groups_.empty()) {
        atom_ = groups_.back().begin;
        ignores_case_ = groups_.back().ignored_case;
        groups_.pop_back();
      }
      out_ += c;
      ++at_;
    } else if (c == '{') {
      interval();
    } else if (c == '*' || c == '+' || c == '?') {
      out_ += c;
      ++at_;
    } else {
      atom_ = out_.size();
      const std::size_t size = utf8_length(c);
      out_.append(in_.substr(at_, size));
      at_ += size;
    }
  }

  // at_ stands on the backslash
  void escape(bool in_class) {
    const char c = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
    const auto as_class = [&](std::string_view members, bool negated) {
      if (in_class && negated) {
        problem_ = cat("\\", c, " inside a class");
        return;
      }
      if (in_class) {
        out_.append(members);
        return;
      }
      out_.append(negated ? "[^" : "[").append(members).append("]");
    };
    if (c == 's' || c == 'S') {
      as_class(space_class, c == 'S');
    } else if (c == 'w' || c == 'W') {
      as_class(in_class ? word_bracket : word_class, c == 'W');
    } else if (c == 'h' || c == 'H') {
      as_class("0-9a-fA-F", c == 'H');
    } else if ((c == 'b' || c == 'B') && !in_class) {
      word_boundary(c == 'b');
    } else if ((c == 'p' || c == 'P') && in_.substr(at_ + 2, 1) == "{") {
      return property(in_class);
    } else if (!in_class && ((c >= '1' && c <= '9') || c == 'k' || c == 'g')) {
      problem_ = "a reference to a group";  // its time has no bound
    } else {
      copy_escape();
      return;
    }
    at_ += 2;
  }

  // Between a character of a word, as \w has them, and another, or the text's beginning or end.
  void word_boundary(bool wanted) {
    const std::string word = cat("[", word_class, "]");
    const std::string ends = wanted ? "(?!" : "(?=", begins = wanted ? "(?=" : "(?!";
    out_.append(cat("(?:(?<=", word, ")", ends, word, ")|(?<!", word, ")", begins, word, "))"));
  }

  // at_ stands on the backslash of \p{
  void property(bool in_class) {
    const auto end = in_.find('}', at_);
    if (end == std::string_view::npos) return copy_escape();
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    const bool caret = name.starts_with('^');
    if (caret) name.remove_prefix(1);
    const bool negated = caret != (in_[at_ + 1] == 'P');
    const std::string known = translated_property(name);
    const auto* members = std::find_if(std::begin(named_classes), std::end(named_classes),
                                       [&](const auto& named) { return named.name == known; });
    const std::string_view of_property = members == std::end(named_classes) ? ""
                                         : members->of_property.empty()     ? members->members
                                                                            : members->of_property;
    if (members == std::end(named_classes)) {
      out_.append(cat(negated ? "\\P{" : "\\p{", known, "}"));
    } else if (in_class && negated) {
      problem_ = cat("\\P{", name, "} inside a class");
      return;
    } else {
      out_.append(cat(in_class ? "" : negated ? "[^" : "[", of_property, in_class ? "" : "]"));
    }
    at_ = end + 1;
  }

  // Any other escape stays as it is, with its braces (\p{L}, \x{1F600}); \uHHHH is \x{HHHH}.
  void copy_escape() {
    const std::size_t begin = at_;
    ++at_;
    const char c = at_ < in_.size() ? in_[at_] : '\0';
    at_ += at_ < in_.size() ? utf8_length(c) : 0;
    if (c == 'u' && at_ + 4 <= in_.size()) {
      out_.append("\\x{").append(in_.substr(at_, 4)).append("}");
      at_ += 4;
      return;
    }
    if (c == 'x' && in_.substr(at_, 1) == "{")
      at_ = std::min(in_.find('}', at_), in_.size() - 1) + 1;
    out_.append(in_.substr(begin, at_ - begin));
  }

  // at_ stands on the bracket of [:alpha:]
  void posix_bracket() {
    const auto end = in_.find(":]", at_);
    if (end == std::string_view::npos) {
      problem_ = "an unclosed [:class:]";
      return;
    }
    const std::string_view name = in_.substr(at_ + 2, end - at_ - 2);
    const auto* members = std::find_if(std::begin(named_classes), std::end(named_classes),
                                       [&](const auto& named) { return named.name == name; });
    if (ignores_case_ && (name == "upper" || name == "lower"))
      out_.append(name == "upper" ? R"(\p{CWU})" : R"(\p{CWL})");  // what has such a form
    out_.append(members == std::end(named_classes) ? in_.substr(at_, end + 2 - at_)
                                                   : members->members);
    at_ = end + 2;
  }

  void char_class() {
    out_ += '[';
    ++at_;
    if (at_ < in_.size() && in_[at_] == '^') {
      out_ += '^';
      ++at_;
    }
    if (at_ < in_.size() && in_[at_] == ']') {
      out_ += "\\]";
      ++at_;
    }
    while (at_ < in_.size() && in_[at_] != ']' && problem_.empty()) {
      if (in_[at_] == '\\') {
        escape(true);
      } else if (in_.substr(at_, 2) == "[:") {
        posix_bracket();
      } else if (in_[at_] == '[') {
        problem_ = "a class inside a class";
      } else if (in_.substr(at_, 2) == "&&") {
        problem_ = "an intersection of classes (&&)";
      } else {
        out_ += in_[at_++];
      }
    }
    if (at_ < in_.size()) {
      out_ += ']';
      ++at_;
    }
  }

  // Inline options: Oniguruma's m (the dot matches newlines) is PCRE2's s.
  void open_group() {
    const bool begins = at_ == 0;
    out_ += '(';
    ++at_;
    if (in_.substr(at_, 1) != "?") return;
    out_ += '?';
    ++at_;
    const std::string_view after = in_.substr(at_, 2);
    if (after == "P=" || after == "P>" || after.starts_with('R') || after.starts_with('&') ||
        after.starts_with('(') || after.starts_with('+') || after.starts_with('|') ||
        (!after.empty() && after[0] >= '0' && after[0] <= '9'))
      problem_ = "a reference to a group";
    if (in_.substr(at_, 1) == "<" || in_.substr(at_, 1) == "P") return;
    bool on = true;
    while (at_ < in_.size() &&
           (in_[at_] == 'i' || in_[at_] == 'm' || in_[at_] == 'x' || in_[at_] == '-')) {
      out_ += in_[at_] == 'm' ? 's' : in_[at_];
      on = on && in_[at_] != '-';
      if (in_[at_] == 'i') ignores_case_ = on;
      ++at_;
    }
    if (in_.substr(at_, 1) != ")") return;
    groups_.back().ignored_case = ignores_case_;  // options alone last
    if (!begins)
      problem_ = "options in the middle (in Oniguruma they take in all alternatives that follow)";
  }

  // {n,m}: a plus after it repeats the repeat (in PCRE2 it would make it possessive).
  void interval() {
    const auto end = in_.find('}', at_);
    const std::string_view body =
        end == std::string_view::npos ? "" : in_.substr(at_ + 1, end - at_ - 1);
    if (body.empty() || body == "," ||
        body.find_first_not_of("0123456789,") != std::string_view::npos) {
      atom_ = out_.size();
      out_ += "\\{";
      ++at_;
      return;
    }
    const bool no_minimum = body[0] == ',';
    const std::string text = cat("{", no_minimum ? "0" : "", body, "}");
    at_ = end + 1;
    if (in_.substr(at_, 1) == "+") {
      out_.insert(atom_, "(?:");
      out_.append(text).append(")+");
      ++at_;
    } else {
      out_.append(text);
    }
  }

  std::string_view in_, where_;
  std::string out_, problem_;
  std::size_t at_ = 0;
  std::size_t atom_ = 0;  // where in out_ the last atom begins
  struct Group {
    std::size_t begin;  // in out_
    bool ignored_case;  // outside it
  };
  std::vector<Group> groups_;
  bool ignores_case_ = false;
};

}  // namespace

Result<std::string> translate_oniguruma(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).run();
}

}  // namespace troupe::engine::tokenizer
