#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "engine/base/text.h"
#include "launch/commands/import/shell/parser.h"
#include "launch/commands/import/shell/runner.h"
#include "launch/commands/import/shell/scan.h"

namespace troupe::launch::shell {
namespace {

using Kind = Status::Kind;

/// Builtins without an effect on values.
constexpr std::array<std::string_view, 17> without_effect{
    ":",    "true",  "echo",  "trap",  "wait",  "ulimit", "umask", "hash", "type",
    "jobs", "alias", "shopt", "kill",  "disown", "times", "bg",   "fg"};
/// Files that set up an installation.
constexpr std::array<std::string_view, 9> setup_files{
    "set_env.sh", "setvars.sh", "activate", ".bashrc",  ".bash_profile",
    "profile",    ".profile",   "conda.sh", "env_vars.sh"};

std::string why_of(const std::vector<Field>& words) {
  for (const Field& word : words)
    if (!word.value.unknown.empty()) return word.value.unknown;
  return "";
}

bool is_any(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::optional<Status> Runner::builtin(const std::string& name, const Node& node,
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

std::optional<Status> Runner::variables_builtin(const std::string& name, const Node& node,
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

void Runner::leave(const std::string& name) {
  flow_ = name == "break"      ? Flow::loop_break
          : name == "continue" ? Flow::loop_continue
          : name == "return"   ? Flow::function_return
                               : Flow::script_exit;
}

void Runner::declare(const Node& node) {
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

void Runner::unset(const std::vector<Field>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& name = words[i].value.text;
    if (is_name(name))
      state_.unset(name);
    else if (const auto bracket = name.find('['); bracket != std::string::npos)
      state_.forget(name.substr(0, bracket), cat("an unset item (line ", words[i].line, ")"));
  }
}

void Runner::shift(const std::vector<Field>& words) {
  std::vector<Value>& values = state_.positional.values;
  const auto count = words.size() > 1 ? whole_number(words[1].value.text) : 1;
  if (!count || !why_of(words).empty()) {
    state_.positional.unknown = why_of(words);
    return;
  }
  if (*count >= 0 && *count <= static_cast<std::int64_t>(values.size()))
    values.erase(values.begin(), values.begin() + *count);
}

void Runner::set(const std::vector<Field>& words) {
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
void Runner::read(const Node& node, const std::vector<Field>& words) {
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

void Runner::change_directory(const std::vector<Field>& words) {
  const bool plain = words.size() == 2 && words[0].value.text == "cd" && why_of(words).empty() &&
                     words[1].value.text != "-";
  if (!plain) {
    state_.directory_unknown = "the working directory";
    return;
  }
  const std::filesystem::path there =
      std::filesystem::path(state_.directory) / words[1].value.text;
  state_.directory = there.lexically_normal().string();
  if (state_.directory.size() > 1 && state_.directory.ends_with('/')) state_.directory.pop_back();
}

void Runner::source(const std::vector<Field>& words, std::size_t line) {
  const std::string file = words.size() > 1 ? words[1].value.text : "";
  const std::string name = file.substr(file.find_last_of('/') + 1);
  if (std::ranges::find(setup_files, name) != setup_files.end()) return;
  if (state_.sourced.empty()) state_.sourced = cat(quote(file, 60), " (line ", line, ")");
}

Status Runner::evaluate(const std::vector<Field>& words, std::size_t line) {
  if (const std::string why = why_of(words); !why.empty()) {
    if (state_.sourced.empty()) state_.sourced = cat("eval of ", why);
    return {Kind::unknown, why};
  }
  std::string text;
  for (std::size_t i = 1; i < words.size(); ++i) text += words[i].value.text + " ";
  budget_.work(text.size());
  const Level level(depth_, text);
  return run(*parse_script(text, line));
}

}  // namespace troupe::launch::shell
