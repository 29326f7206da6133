#include "launch/tools/migration/shell/expand.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/tools/migration/shell/arithmetic.h"
#include "launch/tools/migration/shell/parser.h"
#include "launch/tools/migration/shell/pattern.h"
#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {

namespace {

using Mode = Fields::Mode;

/// Variables that the system or a batch system sets.
bool is_of_environment(std::string_view name) {
  constexpr std::array<std::string_view, 16> names{
      "USER", "HOSTNAME", "HOST",   "LOGNAME", "UID",      "EUID",         "RANDOM",  "SECONDS",
      "PPID", "LINENO",   "OLDPWD", "BASHPID", "FUNCNAME", "EPOCHSECONDS", "SRANDOM", "TMPDIR"};
  return std::ranges::find(names, name) != names.end() || name.starts_with("SLURM_") ||
         name.starts_with("PBS_") || name.starts_with("LSB_") || name.starts_with("OMPI_");
}

bool takes_alternative(std::string_view operation) {
  return operation.ends_with('-') || operation.ends_with('=') || operation.ends_with('?') ||
         operation.ends_with('+');
}

std::vector<Value> values_of(const Variable& variable) {
  std::vector<Value> out;
  for (const auto& [index, value] : variable.items) out.push_back(value);
  return out;
}

}  // namespace

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

Value Expander::output_of(std::string_view command) {
  const auto path = [&](const std::string& argument) -> std::optional<std::string> {
    std::vector<std::string> paths;
    const NodePointer command_line = parse_script(argument, line_);
    if (command_line->children.size() != 1) return std::nullopt;
    for (const Field& each : fields(command_line->children[0]->words)) {
      if (!each.value.unknown.empty()) return std::nullopt;
      if (each.value.text != "--" && each.value.text != "-P") paths.push_back(each.value.text);
    }
    return paths.size() == 1 ? std::optional(paths[0]) : std::nullopt;
  };
  if (auto folder = printed_folder(command, state_, path)) return {std::move(*folder), "", ""};
  return {cat("$(", command, ")"), cat("the output of ", quote(command, 60), " (line ", line_, ")"),
          ""};
}

Looked Expander::special(const std::string& name) {
  const Positional& positional = state_.positional;
  const auto single = [](Value value) { return Looked{true, false, {std::move(value)}, ""}; };
  if (name == "@" || name == "*")
    return {!positional.values.empty(), true, positional.values, positional.unknown};
  if (name == "0") return single({state_.script_name, "", ""});
  const auto unknown = [&](std::string_view what) {
    return single({"$" + name, cat(what, " (line ", line_, ")"), ""});
  };
  if (name == "#" && positional.given && positional.unknown.empty())
    return single({std::to_string(positional.values.size()), "", ""});
  if (name == "#") return unknown("the number of the script's arguments");
  const auto number = whole_number(name);
  if (!number) return unknown("$" + name);
  if (!positional.unknown.empty()) return single({"$" + name, positional.unknown, ""});
  const auto index = static_cast<std::size_t>(*number);
  if (index <= positional.values.size()) return single(positional.values[index - 1]);
  return {};
}

/// All items of an associative array: their number is known, and their order is bash's own.
Looked Expander::in_bashs_order(const Parameter& parameter, const Variable& variable) const {
  Looked out{!variable.by_key.empty(), true, {}, ""};
  for (const auto& [key, value] : variable.by_key) out.values.push_back(value);
  if (!parameter.length && out.values.size() > 1)
    return {true, true, {}, cat("the order of the items of ", parameter.name)};
  return out;
}

Looked Expander::variable(const Parameter& parameter) {
  const Variable* found = state_.find(parameter.name);
  if (!found && parameter.name == "PWD" && state_.directory_unknown.empty())
    return {true, false, {{state_.directory, "", ""}}, ""};
  if (!found && parameter.name == "BASH_SOURCE")
    return {true, false, {{state_.script_name, "", ""}}, ""};
  if (!found) return {};
  const std::string index = parameter.index.value_or("0");
  if (index == "@" || index == "*") {
    if (!found->unknown.empty()) return {true, true, {}, found->unknown};
    if (found->associative) return in_bashs_order(parameter, *found);
    return {!found->items.empty(), true, values_of(*found), ""};
  }
  if (!found->unknown.empty())
    return {true, false, {{"$" + parameter.name, found->unknown, ""}}, ""};
  if (found->associative) {
    const Value key = text_of(index, Mode::single, false);
    const auto at = found->by_key.find(key.text);
    if (!key.unknown.empty()) return {true, false, {{"$" + parameter.name, key.unknown, ""}}, ""};
    return at == found->by_key.end() ? Looked{} : Looked{true, false, {at->second}, ""};
  }
  const Variable copy = *found;  // an index may assign
  const Value number = index == "0" ? Value{"0", "", ""} : arithmetic(Word{index, line_});
  if (!number.unknown.empty())
    return {true, false, {{"$" + parameter.name, number.unknown, ""}}, ""};
  std::int64_t at = *whole_number(number.text);
  if (at < 0 && !copy.items.empty()) at += copy.items.rbegin()->first + 1;
  const auto item = copy.items.find(at);
  return item == copy.items.end() ? Looked{} : Looked{true, false, {item->second}, ""};
}

Looked Expander::look_up(const Parameter& parameter) {
  if (parameter.indirect) return indirect(parameter);
  return is_name(parameter.name) ? variable(parameter) : special(parameter.name);
}

/// ${!name}, and the indexes ${!name[@]}.
Looked Expander::indirect(const Parameter& parameter) {
  const Looked direct = variable(parameter);
  const std::string why = cat(quote("${!" + parameter.name + "}", 60), " (line ", line_, ")");
  if (direct.list) {
    const Variable* found = state_.find(parameter.name);
    if (!found || found->associative || !direct.unknown.empty()) return {true, true, {}, why};
    Looked out{direct.set, true, {}, ""};
    for (const auto& [index, value] : found->items)
      out.values.push_back({std::to_string(index), "", ""});
    return out;
  }
  if (direct.values.empty() || !direct.values[0].unknown.empty())
    return {true, false, {{"${!" + parameter.name + "}", why, ""}}, ""};
  const auto target = parameter_of(direct.values[0].text);
  if (!target || !target->operation.empty() || target->indirect)
    return {true, false, {{"${!" + parameter.name + "}", why, ""}}, ""};
  const Level level(depth_, parameter.name);
  return look_up(*target);
}

Value Expander::length(const Looked& found) const {
  if (found.list && !found.values.empty()) return {std::to_string(found.values.size()), "", ""};
  std::string why = found.unknown;
  if (!found.list && !found.values.empty()) why = found.values[0].unknown;
  if (!why.empty()) return {"", why, ""};
  if (found.list) return {"0", "", ""};
  return {std::to_string(found.values.empty() ? 0 : found.values[0].text.size()), "", ""};
}

Value Expander::unset(const Parameter& parameter, std::string_view raw) const {
  const std::string place = cat(" (line ", line_, ")");
  if (!is_name(parameter.name))
    return {std::string(raw), cat("the script's argument ", parameter.name, place), ""};
  if (is_of_environment(parameter.name))
    return {std::string(raw), cat(parameter.name, " of the environment", place), ""};
  if (!state_.sourced.empty())
    return {std::string(raw), cat(parameter.name, place, ", which ", state_.sourced, " may set"),
            ""};
  if (state_.unset_is_error)
    return {std::string(raw), cat(parameter.name, place, ", which the script does not set"), ""};
  return {"", "", cat(parameter.name, place)};
}

void Expander::parameter(const Parameter& parameter, std::string_view raw, bool quoted,
                         Fields& out) {
  const Level level(depth_, raw);
  Looked found = look_up(parameter);
  if (parameter.length) return out.value(length(found), quoted);
  if (takes_alternative(parameter.operation) && alternative(parameter, found, quoted, out)) return;
  if (found.list) {
    const bool sliced = parameter.operation == ":";
    if (sliced) found = slice(parameter, std::move(found));
    std::vector<Value> values;
    for (const Value& value : found.values)
      values.push_back(sliced ? value : changed(parameter, value));
    const bool star = parameter.name == "*" || parameter.index == "*";
    if (!star || !quoted) return out.list(values, found.unknown, quoted, raw);
    Value all{"", found.unknown, ""};
    for (const Value& value : values) {
      all.text += cat(&value == &values.front() ? "" : " ", value.text);
      if (all.unknown.empty()) all.unknown = value.unknown;
    }
    return out.value(all, quoted);
  }
  Value value = found.set && !found.values.empty() ? found.values[0] : unset(parameter, raw);
  if (!value.unknown.empty() && value.text.empty()) value.text = raw;
  if (!parameter.operation.empty() && !takes_alternative(parameter.operation))
    value = changed(parameter, value);
  out.value(value, quoted);
}

/// ${A:-word} and its kind. True if the word, and not the value, has been taken.
bool Expander::alternative(const Parameter& parameter, const Looked& found, bool quoted,
                           Fields& out) {
  const std::string& operation = parameter.operation;
  const bool unknown =
      !found.unknown.empty() || (!found.values.empty() && !found.values[0].unknown.empty());
  const bool empty = !found.set || (operation[0] == ':' && !unknown &&
                                    (found.values.empty() || found.values[0].text.empty()) &&
                                    found.values.size() < 2);
  if (operation.back() == '+') {
    if (!unknown && !empty) word(parameter, quoted, out);
    if (unknown)
      out.value({cat("${", parameter.name, operation, parameter.word, "}"),
                 found.unknown.empty() ? found.values[0].unknown : found.unknown, ""},
                quoted);
    return true;
  }
  if (!empty) return false;
  if (operation.back() == '?') {
    const Value message = text_of(parameter.word, Mode::single, quoted);
    out.value({cat("${", parameter.name, "}"),
               cat(parameter.name, ", which the script requires (line ", line_, ")",
                   message.text.empty() ? "" : ": ", quote(message.text, 80)),
               ""},
              quoted);
    return true;
  }
  if (operation.back() == '=' && is_name(parameter.name)) {
    const Value value = text_of(parameter.word, Mode::single, quoted);
    state_.set(parameter.name, value);
    out.value(value, quoted);
    return true;
  }
  word(parameter, quoted, out);
  return true;
}

/// Quotation marks in "${A:-"x"}" are none of the text, and ${A:-x y} is two words.
void Expander::word(const Parameter& parameter, bool quoted, Fields& out) {
  const InWord before = std::exchange(in_word_, quoted ? InWord::within_quotes : InWord::unquoted);
  walk(parameter.word, quoted, out);
  in_word_ = before;
}

/// ${a[@]:offset:length} and ${@:offset:length}, which counts from 1.
Looked Expander::slice(const Parameter& parameter, Looked found) {
  if (!found.unknown.empty()) return found;
  std::size_t colon = 0;
  while (colon < parameter.word.size() && parameter.word[colon] != ':')
    colon = end_of_part(parameter.word, colon);
  const Value offset = arithmetic(Word{parameter.word.substr(0, colon), line_});
  const Value count = colon < parameter.word.size()
                          ? arithmetic(Word{parameter.word.substr(colon + 1), line_})
                          : Value{std::to_string(found.values.size()), "", ""};
  for (const Value& each : {offset, count})
    if (!each.unknown.empty()) return {true, true, {}, each.unknown};
  const auto size = static_cast<std::int64_t>(found.values.size());
  std::int64_t begin = *whole_number(offset.text);
  if (!is_name(parameter.name)) {
    if (begin == 0) found.values.insert(found.values.begin(), {state_.script_name, "", ""});
    begin = begin > 0 ? begin - 1 : begin;
  }
  if (begin < 0) begin += size;
  begin = std::clamp<std::int64_t>(begin, 0, static_cast<std::int64_t>(found.values.size()));
  const std::int64_t end =
      std::min(begin + std::max<std::int64_t>(0, std::min(*whole_number(count.text), size + 1)),
               static_cast<std::int64_t>(found.values.size()));
  found.values = {found.values.begin() + begin, found.values.begin() + end};
  return found;
}

Value Expander::substring(const Parameter& parameter, const Value& value) {
  std::size_t colon = 0;
  while (colon < parameter.word.size() && parameter.word[colon] != ':')
    colon = end_of_part(parameter.word, colon);
  const Value offset = arithmetic(Word{parameter.word.substr(0, colon), line_});
  const auto size = static_cast<std::int64_t>(value.text.size());
  const Value count = colon < parameter.word.size()
                          ? arithmetic(Word{parameter.word.substr(colon + 1), line_})
                          : Value{std::to_string(size), "", ""};
  for (const Value& each : {offset, count})
    if (!each.unknown.empty()) return {value.text, each.unknown, ""};
  std::int64_t begin = *whole_number(offset.text), end = *whole_number(count.text);
  begin = begin < 0 ? begin + size : begin;
  if (begin < 0 || begin > size) return {"", "", ""};
  end = end < 0 ? size + std::max(end, -size) : begin + std::min(end, size - begin);
  if (end < begin) return {"", "", ""};
  return {value.text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
          "", value.unset};
}

/// ${A%%x}, ${A/x/y}, ${A^^} and their kind.
Value Expander::changed(const Parameter& parameter, const Value& value) {
  const std::string& operation = parameter.operation;
  if (operation.empty() || takes_alternative(operation) || !value.unknown.empty()) return value;
  Value out = value;
  const auto of_word = [&](std::string_view raw) {
    Value word = text_of(raw, Mode::pattern, false);
    if (out.unknown.empty()) out.unknown = word.unknown;
    return word.text;
  };
  if (operation == "#" || operation == "##") {
    out.text = without_prefix(value.text, of_word(parameter.word), operation == "##", budget_);
  } else if (operation == "%" || operation == "%%") {
    out.text = without_suffix(value.text, of_word(parameter.word), operation == "%%", budget_);
  } else if (operation[0] == '/') {
    std::size_t slash = 0;
    while (slash < parameter.word.size() && parameter.word[slash] != '/')
      slash = end_of_part(parameter.word, slash);
    const std::string pattern = of_word(std::string_view(parameter.word).substr(0, slash));
    Value by;
    if (slash < parameter.word.size())
      by = text_of(std::string_view(parameter.word).substr(slash + 1), Mode::single, false);
    if (out.unknown.empty()) out.unknown = by.unknown;
    const char place = operation == "/#" ? '#' : operation == "/%" ? '%' : '\0';
    out.text = replaced(value.text, pattern, by.text, operation == "//", place, budget_);
  } else if (operation[0] == '^' || operation[0] == ',') {
    const bool all = operation.size() == 2, up = operation[0] == '^';
    for (std::size_t i = 0; i < (all ? out.text.size() : std::min<std::size_t>(1, out.text.size()));
         ++i) {
      const auto c = static_cast<unsigned char>(out.text[i]);
      out.text[i] = static_cast<char>(up ? std::toupper(c) : std::tolower(c));
    }
  } else if (operation == ":") {
    out = substring(parameter, value);
  } else {
    out.unknown = cat("${", parameter.name, operation, parameter.word, "} (line ", line_, ")");
  }
  return out;
}

}  // namespace troupe::launch::tools::migration::shell
