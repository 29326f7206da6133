#include "launch/tools/migration/shell/builtins.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/tools/migration/shell/parser.h"
#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {
namespace {

using Kind = Status::Kind;

/// Builtins without an effect on values.
constexpr std::array<std::string_view, 17> without_effect{
    ":",    "true",  "echo",  "trap", "wait",   "ulimit", "umask", "hash", "type",
    "jobs", "alias", "shopt", "kill", "disown", "times",  "bg",    "fg"};
/// Files that set up an installation.
constexpr std::array<std::string_view, 9> setup_files{"set_env.sh", "setvars.sh",    "activate",
                                                      ".bashrc",    ".bash_profile", "profile",
                                                      ".profile",   "conda.sh",      "env_vars.sh"};

std::string why_of(const std::vector<Field>& words) {
  for (const Field& word : words)
    if (!word.value.unknown.empty()) return word.value.unknown;
  return "";
}

bool is_any(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Builtins::Builtins(const ScriptCall& call) : state_(call.environment), expander_(state_, budget_) {
  state_.script_name = call.path;
  state_.directory = call.directory;
  state_.positional.given = !call.arguments.empty();
  for (const std::string& each : call.arguments) state_.positional.values.push_back({each, "", ""});
}

Status Builtins::arithmetic(const Word& expression) {
  const Value value = expander_.arithmetic(expression);
  if (!value.unknown.empty()) return {Kind::unknown, value.unknown};
  return status_of(value.text != "0");
}

/// The items are expanded before the array changes: A=(x "${A[@]}").
void Builtins::assign_array(const Assignment& assignment, bool associative) {
  Variable variable;
  if (const Variable* before = state_.find(assignment.name)) {
    associative = associative || before->associative;
    if (assignment.append) variable = *before;
  }
  variable.array = true;
  variable.associative = associative;
  std::vector<std::pair<std::string, Value>> items;  // an index or a key, or "" for the next one
  for (const Word& word : assignment.items) {
    const auto close = word.raw.find("]=");
    if (word.raw.starts_with('[') && close != std::string::npos) {
      const Word index{word.raw.substr(1, close - 1), word.line},
          text{word.raw.substr(close + 2), word.line};
      Value key = associative ? expander_.single(index) : expander_.arithmetic(index);
      if (!key.unknown.empty()) return state_.forget(assignment.name, key.unknown);
      items.emplace_back(std::move(key.text), expander_.single(text));
      continue;
    }
    for (Field& field : expander_.fields(word)) {
      if (field.open) return state_.forget(assignment.name, field.value.unknown);
      items.emplace_back("", std::move(field.value));
    }
  }
  state_.set(assignment.name, std::move(variable));
  std::vector<Value> next;
  for (auto& [index, value] : items) {
    if (index.empty()) {
      next.push_back(std::move(value));
      continue;
    }
    state_.append(assignment.name, std::exchange(next, {}));
    state_.set_item(assignment.name, index, std::move(value));
  }
  state_.append(assignment.name, std::move(next));
}

void Builtins::assign(const Assignment& assignment, bool associative) {
  if (const Variable* before = assignment.append ? state_.find(assignment.name) : nullptr)
    for (const auto& [index, value] : before->items) budget_.work(value.text.size() + 1);
  if (assignment.array) return assign_array(assignment, associative);
  Value value = expander_.single(assignment.value);
  if (!assignment.index)
    return assignment.append ? state_.append(assignment.name, value)
                             : state_.set(assignment.name, std::move(value));
  const Variable* before = state_.find(assignment.name);
  const Value index = before && before->associative ? expander_.single(*assignment.index)
                                                    : expander_.arithmetic(*assignment.index);
  if (!index.unknown.empty() || assignment.append)
    return state_.forget(assignment.name, index.unknown.empty() ? cat("an appended item (line ",
                                                                      assignment.value.line, ")")
                                                                : index.unknown);
  state_.set_item(assignment.name, index.text, std::move(value));
}

std::optional<Status> Builtins::builtin(const std::string& name, const Node& node,
                                        const std::vector<Field>& words) {
  const Status done{Kind::yes, ""};
  if (name == "false") return Status{Kind::no, ""};
  if (std::ranges::find(without_effect, name) != without_effect.end()) return done;
  if (name == "[" || name == "test") {
    std::vector<Field> tested(words.begin() + 1, words.end());
    if (name == "[" && !tested.empty()) tested.pop_back();
    return test_command(tested, node.line);
  }
  if (is_any(name, {"exit", "return", "break", "continue"})) {
    leave(name);
    return done;
  }
  if (name == "eval") return evaluate(words, node.line);
  if (is_any(name, {"command", "builtin", "exec"})) {
    std::vector<Field> rest(words.begin() + 1, words.end());
    if (rest.empty() || rest[0].value.text.starts_with('-')) return std::nullopt;
    Status status = program(std::move(rest), node.line);
    if (name == "exec") flow_ = Flow::script_exit;
    return status;
  }
  return variables_builtin(name, node, words);
}

std::optional<Status> Builtins::variables_builtin(const std::string& name, const Node& node,
                                                  const std::vector<Field>& words) {
  const Status done{Kind::yes, ""};
  if (is_any(name, {"export", "local", "declare", "typeset", "readonly"})) {
    declare(node);
  } else if (name == "unset") {
    unset(words);
  } else if (name == "shift") {
    shift(words);
  } else if (name == "set") {
    set(words);
  } else if (name == "let") {
    Status status = done;
    for (std::size_t i = 1; i < words.size(); ++i)
      status = arithmetic(Word{words[i].value.text, node.line});
    return status;
  } else if (is_any(name, {"cd", "pushd", "popd"})) {
    change_directory(words);
  } else if (name == "." || name == "source") {
    source(words, node.line);
  } else if (name == "read") {
    read(node, words);
    return Status{Kind::unknown, cat("whether read succeeds (line ", node.line, ")")};
  } else if (is_any(name, {"mapfile", "readarray", "getopts", "printf"})) {
    const std::string why = cat("what ", name, " assigns (line ", node.line, ")");
    const bool prints = name == "printf" && (words.size() < 3 || words[1].value.text != "-v");
    for (std::size_t i = 1; i < words.size() && !prints; ++i)
      if (is_name(words[i].value.text)) state_.forget(words[i].value.text, why);
    if (name == "getopts") state_.forget("OPTARG", why);
    if (name != "printf") return Status{Kind::unknown, why};
  } else {
    return std::nullopt;
  }
  return done;
}

void Builtins::leave(const std::string& name) {
  flow_ = name == "break"      ? Flow::loop_break
          : name == "continue" ? Flow::loop_continue
          : name == "return"   ? Flow::function_return
                               : Flow::script_exit;
}

void Builtins::declare(const Node& node) {
  const bool local = node.words[0].raw != "export" && node.words[0].raw != "readonly";
  bool associative = false, reference = false;
  const auto name_here = [&](const std::string& name) {
    if (local) state_.make_local(name);
    if (!associative) return;
    Variable variable;
    variable.array = variable.associative = true;
    state_.set(name, variable);
  };
  for (std::size_t i = 1; i < node.words.size(); ++i) {
    const Word& word = node.words[i];
    if (word.raw.starts_with('-') || word.raw.starts_with('+')) {
      associative = associative || word.raw.find('A') != std::string::npos;
      reference = reference || (word.raw.find('n') != std::string::npos && local);
    } else if (const auto assignment = assignment_of(word)) {
      // The value is that before `local`: local A=$A.
      Assignment known = *assignment;
      const Value value = expander_.single(known.value);
      if (local && !known.append) name_here(known.name);
      if (reference)
        state_.forget(known.name, cat("a reference to a variable (line ", word.line, ")"));
      else if (known.append)
        state_.append(known.name, value);
      else
        state_.set(known.name, value);
    } else {
      for (const Field& field : expander_.fields(word))
        if (is_name(field.value.text)) name_here(field.value.text);
    }
  }
  for (const Assignment& each : node.assignments) {
    if (local) state_.make_local(each.name);
    assign(each, associative);
  }
}

void Builtins::unset(const std::vector<Field>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& name = words[i].value.text;
    if (is_name(name))
      state_.unset(name);
    else if (const auto bracket = name.find('['); bracket != std::string::npos)
      state_.forget(name.substr(0, bracket), cat("an unset item (line ", words[i].line, ")"));
  }
}

void Builtins::shift(const std::vector<Field>& words) {
  std::vector<Value>& values = state_.positional.values;
  const auto count = words.size() > 1 ? whole_number(words[1].value.text) : 1;
  if (!count || !why_of(words).empty()) {
    state_.positional.unknown = why_of(words);
    return;
  }
  if (*count >= 0 && *count <= static_cast<std::int64_t>(values.size()))
    values.erase(values.begin(), values.begin() + *count);
}

void Builtins::set(const std::vector<Field>& words) {
  std::size_t i = 1;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i].value.text;
    if (word.size() < 2 || (word[0] != '-' && word[0] != '+') || word == "--") break;
    if (word.find('u') != std::string::npos) state_.unset_is_error = word[0] == '-';
    if (word.ends_with('o') && i + 1 < words.size()) {
      ++i;
      if (words[i].value.text == "nounset") state_.unset_is_error = word[0] == '-';
    }
  }
  if (i >= words.size()) return;
  if (words[i].value.text == "--") ++i;
  state_.positional = {{}, true, ""};
  for (; i < words.size(); ++i) {
    if (words[i].open) state_.positional.unknown = words[i].value.unknown;
    state_.positional.values.push_back(words[i].value);
  }
}

/// From a here-document: a line, or with -d '' all of it; what else is read is unknown.
void Builtins::read(const Node& node, const std::vector<Field>& words) {
  bool whole = false, array = false;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].value.text;
    if (word == "-d" || word == "-p" || word == "-n" || word == "-t" || word == "-u") {
      whole = whole || (word == "-d" && i + 1 < words.size() && words[i + 1].value.text.empty());
      ++i;
    } else if (word.starts_with('-')) {
      array = array || word.find('a') != std::string::npos;
    } else {
      names.push_back(word);
    }
  }
  if (names.empty()) names.emplace_back("REPLY");
  if (!node.here || names.size() > 1 || array) {
    for (const std::string& name : names)
      state_.forget(name, cat("what read reads (line ", node.line, ")"));
    return;
  }
  Value value = expander_.document(*node.here);
  if (!whole) value.text.resize(std::min(value.text.find('\n'), value.text.size()));
  const auto begin = value.text.find_first_not_of(" \t\n"),
             end = value.text.find_last_not_of(" \t\n");
  value.text = begin == std::string::npos ? "" : value.text.substr(begin, end - begin + 1);
  state_.set(names[0], std::move(value));
}

void Builtins::change_directory(const std::vector<Field>& words) {
  const bool plain = words.size() == 2 && words[0].value.text == "cd" && why_of(words).empty() &&
                     words[1].value.text != "-";
  if (!plain) {
    state_.directory_unknown = "the working directory";
    return;
  }
  const std::filesystem::path there = std::filesystem::path(state_.directory) / words[1].value.text;
  state_.directory = there.lexically_normal().string();
  if (state_.directory.size() > 1 && state_.directory.ends_with('/')) state_.directory.pop_back();
}

void Builtins::source(const std::vector<Field>& words, std::size_t line) {
  const std::string file = words.size() > 1 ? words[1].value.text : "";
  const std::string name = file.substr(file.find_last_of('/') + 1);
  if (std::ranges::find(setup_files, name) != setup_files.end()) return;
  if (state_.sourced.empty()) state_.sourced = cat(quote(file, 60), " (line ", line, ")");
}

Status Builtins::evaluate(const std::vector<Field>& words, std::size_t line) {
  if (const std::string why = why_of(words); !why.empty()) {
    if (state_.sourced.empty()) state_.sourced = cat("eval of ", why);
    return {Kind::unknown, why};
  }
  std::string text;
  for (std::size_t i = 1; i < words.size(); ++i) text += words[i].value.text + " ";
  budget_.work(text.size());
  return run_text(text, line);
}

}  // namespace troupe::launch::tools::migration::shell
