#include "launch/commands/import/shell/expand.h"

#include <filesystem>
#include <utility>

#include "engine/base/text.h"
#include "launch/commands/import/shell/arithmetic.h"
#include "launch/commands/import/shell/scan.h"

namespace troupe::launch::shell {

using Mode = Fields::Mode;

std::string Expander::separators() const {
  const Variable* set = state_.find("IFS");
  if (!set || set->items.empty()) return " \t\n";
  return set->items.begin()->second.text;
}

std::vector<Field> Expander::fields(const Word& word) {
  std::vector<Field> out;
  line_ = word.line;
  for (const std::string& raw : braces(word.raw, budget_)) {
    Fields some(Mode::split, separators(), word.line, budget_);
    walk(raw, false, some);
    for (Field& field : some.take()) out.push_back(std::move(field));
  }
  return out;
}

std::vector<Field> Expander::fields(const std::vector<Word>& words) {
  std::vector<Field> out;
  for (const Word& word : words)
    for (Field& field : fields(word)) out.push_back(std::move(field));
  return out;
}

Value Expander::text_of(std::string_view raw, Mode mode, bool quoted) {
  Fields out(mode, "", line_, budget_);
  walk(raw, quoted, out);
  return out.take_value();
}

Value Expander::single(const Word& word) {
  line_ = word.line;
  return text_of(word.raw, Mode::single, false);
}

Value Expander::pattern(const Word& word) {
  line_ = word.line;
  return text_of(word.raw, Mode::pattern, false);
}

Value Expander::document(const HereDocument& here) {
  line_ = here.text.line;
  if (here.literal) return {here.text.raw, "", ""};
  return text_of(here.text.raw, Mode::single, true);
}

Value Expander::arithmetic(const Word& expression) {
  line_ = expression.line;
  const Value text = text_of(expression.raw, Mode::single, true);
  if (!text.unknown.empty()) return {cat("$((", expression.raw, "))"), text.unknown, ""};
  Value value = shell::arithmetic(text.text, line_, state_, budget_);
  value.unset = text.unset;
  return value;
}

/// The characters of `raw`, which are within double quotation marks if `quoted`.
void Expander::walk(std::string_view raw, bool quoted, Fields& out) {
  const Level level(depth_, raw);
  budget_.work(raw.size());
  for (std::size_t at = 0; at < raw.size();) {
    const char c = raw[at];
    if (c == '\\') {
      at = backslash(raw, at, quoted, out);
    } else if (c == '`' || (c == '$' && at + 1 < raw.size())) {
      at = dollar(raw, at, quoted, out);
    } else if (!quoted && (c == '\'' || c == '"')) {
      at = quotation(raw, at, out);
    } else if (!quoted && (raw.substr(at, 2) == "<(" || raw.substr(at, 2) == ">(")) {
      const std::size_t end = end_of_part(raw, at);
      out.value({std::string(raw.substr(at, end - at)),
                 cat("a process substitution (line ", line_, ")"), ""},
                true);
      at = end;
    } else {
      if (!quoted && in_word_ == InWord::unquoted)
        out.value({std::string(1, c), "", ""}, false);
      else if (c != '"' || in_word_ != InWord::within_quotes)
        out.literal(c, quoted);
      ++at;
    }
  }
}

std::size_t Expander::backslash(std::string_view raw, std::size_t at, bool quoted, Fields& out) {
  if (at + 1 == raw.size()) {
    out.literal('\\', true);
    return at + 1;
  }
  const char next = raw[at + 1];
  if (next == '\n') return at + 2;
  if (quoted && std::string_view("$`\"\\").find(next) == std::string_view::npos)
    out.literal('\\', true);
  out.literal(next, true);
  return at + 2;
}

std::size_t Expander::quotation(std::string_view raw, std::size_t at, Fields& out) {
  const std::size_t end = end_of_part(raw, at);
  const bool closed = end - at >= 2 && raw[end - 1] == raw[at];
  const std::string_view inside = raw.substr(at + 1, end - at - (closed ? 2 : 1));
  // "$@" without arguments is no field, unlike "".
  if (inside.find("@") == std::string_view::npos || raw[at] == '\'') out.mark();
  if (raw[at] == '"') {
    walk(inside, true, out);
    return end;
  }
  for (const char c : inside) out.literal(c, true);
  return end;
}

void Expander::dollar_quoted(std::string_view text, Fields& out) {
  constexpr std::string_view names = "abefnrtv\\'\"?", characters = "\a\b\x1b\f\n\r\t\v\\'\"?";
  out.mark();
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto known = text[at] == '\\' && at + 1 < text.size() ? names.find(text[at + 1])
                                                                : std::string_view::npos;
    if (known != std::string_view::npos) ++at;
    out.literal(known == std::string_view::npos ? text[at] : characters[known], true);
  }
}

std::size_t Expander::dollar(std::string_view raw, std::size_t at, bool quoted, Fields& out) {
  const std::size_t end = end_of_part(raw, at);
  const std::string_view part = raw.substr(at, end - at);
  if (part[0] == '`') {
    out.value(output_of(part.substr(1, part.size() - 2)), quoted);
  } else if (part.starts_with("$((") && part.ends_with("))")) {
    const Word inside{std::string(part.substr(3, part.size() - 5)), line_};
    out.value(arithmetic(inside), quoted);
  } else if (part.starts_with("$(")) {
    out.value(output_of(part.substr(2, part.size() - 3)), quoted);
  } else if (part.starts_with("${")) {
    const auto found = parameter_of(part.substr(2, part.size() - 3));
    if (found && part.ends_with('}'))
      parameter(*found, part, quoted, out);
    else
      out.value({std::string(part), cat(quote(part, 40), " (line ", line_, ")"), ""}, quoted);
  } else if (!quoted && part.starts_with("$'")) {
    dollar_quoted(part.substr(2, part.size() - 3), out);
  } else if (!quoted && part.starts_with("$\"")) {
    return quotation(raw, at + 1, out);
  } else {
    return name(raw, at, quoted, out);
  }
  return end;
}

/// $NAME, $1, $@ and the like; another dollar sign means itself.
std::size_t Expander::name(std::string_view raw, std::size_t at, bool quoted, Fields& out) {
  std::size_t end = end_of_name(raw, at + 1);
  if (end == at + 1 && std::string_view("@*#?$!-0123456789").find(raw[end]) != raw.npos) ++end;
  if (end == at + 1) {
    out.literal('$', quoted);
    return end;
  }
  const std::string name(raw.substr(at + 1, end - at - 1));
  parameter({name, false, false, std::nullopt, "", ""}, raw.substr(at, end - at), quoted, out);
  return end;
}

/// Only what needs no command: the working directory, and the folder of a path.
Value Expander::output_of(std::string_view command) {
  const auto unknown = [&] {
    return Value{cat("$(", command, ")"),
                 cat("the output of ", quote(command, 60), " (line ", line_, ")"), ""};
  };
  std::string text(command);
  for (const std::string_view quiet : {" >/dev/null", " 2>&1", " 2>/dev/null", " &>/dev/null"})
    if (const auto at = text.find(quiet); at != std::string::npos) text.erase(at, quiet.size());
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  if (text == "pwd" && state_.directory_unknown.empty()) return {state_.directory, "", ""};
  const bool moves = text.starts_with("cd ") && text.ends_with("&& pwd"),
             names = text.starts_with("dirname ");
  if (!moves && !names) return unknown();
  const std::string argument =
      moves ? text.substr(3, text.size() - 9) : text.substr(std::string_view("dirname ").size());
  if (argument.find_first_of(";|&<>") != std::string::npos) return unknown();
  const auto found = fields(Word{argument, line_});
  std::vector<Field> path;
  for (const Field& each : found)
    if (each.value.text != "--" && each.value.text != "-P") path.push_back(each);
  if (path.size() != 1 || !path[0].value.unknown.empty()) return unknown();
  const std::filesystem::path given(path[0].value.text);
  if (names) {
    const std::string parent = given.parent_path().string();
    return {parent.empty() ? "." : parent, "", ""};
  }
  if (!given.is_absolute() && !state_.directory_unknown.empty()) return unknown();
  std::string there = (std::filesystem::path(state_.directory) / given).lexically_normal().string();
  if (there.size() > 1 && there.ends_with('/')) there.pop_back();
  return {there, "", ""};
}

}  // namespace troupe::launch::shell
