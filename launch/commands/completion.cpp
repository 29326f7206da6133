#include "launch/commands/completion.h"

#include "engine/base/text/shell_word.h"
#include "engine/base/text/text.h"

namespace troupe::launch::commands {
namespace {

using Commands = std::vector<CommandEntry>;

std::vector<std::string> names(const Commands& commands) {
  std::vector<std::string> out;
  for (const CommandEntry& command : commands)
    if (!command.name.empty()) out.push_back(command.name);
  return out;
}

std::vector<std::string> option_names(const CommandEntry& command) {
  std::vector<std::string> out;
  for (const OptionEntry& option : command.options)
    out.insert(out.end(), option.names.begin(), option.names.end());
  return out;
}

/// The branches of `case COMMAND:OPTION in` that list an option's values.
std::string bash_values(const Commands& commands) {
  std::string out;
  for (const CommandEntry& command : commands) {
    for (const OptionEntry& option : command.options) {
      if (option.names.empty() || option.choices.empty()) continue;
      std::vector<std::string> patterns;
      for (const auto& name : option.names) patterns.push_back(cat(command.name, ":", name));
      out += cat("    ", join(patterns, "|"), ") words='", join(option.choices, " "), "' ;;\n");
    }
  }
  return out;
}

/// The branches that let an option's value be a file name.
std::string bash_file_options(const Commands& commands) {
  std::vector<std::string> patterns;
  for (const CommandEntry& command : commands) {
    for (const OptionEntry& option : command.options) {
      if (option.argument.empty() || !option.choices.empty()) continue;
      for (const auto& name : option.names) patterns.push_back(cat(command.name, ":", name));
    }
  }
  return cat("    ", join(patterns, "|"), ") return ;;\n");
}

std::string bash_options(const Commands& commands) {
  std::string out;
  for (const CommandEntry& command : commands) {
    if (command.name.empty()) continue;
    out += cat("      ", command.name, ") words='", join(option_names(command), " "), "' ;;\n");
  }
  return out;
}

// A value is completed from its list or, as `complete -o default` does, from file names. The last
// command on the line counts: `launch ... -- train` completes the options of train.
std::string bash_script(const Commands& commands) {
  return cat(
      "# bash completion of troupe\n"
      "_troupe() {\n"
      "  local word command= words=\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $word in ",
      join(names(commands), "|"),
      ") command=$word ;; esac\n"
      "  done\n"
      "  case $command:$previous in\n",
      bash_values(commands), bash_file_options(commands),
      "    *)\n"
      "      case $command in\n"
      "      '') words='",
      join(names(commands), " "), " ", join(option_names(commands.front()), " "), "' ;;\n",
      bash_options(commands),
      "      esac\n"
      "      [[ -z $command || $current == -* ]] || return ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
      "}\n"
      "complete -o default -F _troupe troupe\n");
}

/// A word of zsh's _arguments or _describe: the characters that end a field are escaped.
std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const OptionEntry& option) {
  if (option.argument.empty()) return "";
  std::vector<std::string> values;
  for (const auto& choice : option.choices) values.push_back(zsh_escaped(choice));
  const std::string action = values.empty() ? "_files" : cat("(", join(values, " "), ")");
  return cat(":", zsh_escaped(option.argument), ":", action);
}

std::string zsh_arguments(const CommandEntry& command) {
  std::string out;
  for (const OptionEntry& option : command.options) {
    if (option.names.empty()) out += cat(" \\\n        ", shell_word(cat("*", zsh_value(option))));
    for (const auto& name : option.names)
      out += cat(" \\\n        ",
                 shell_word(cat("*", name, "[", zsh_escaped(option.help), "]", zsh_value(option))));
  }
  return out;
}

std::string zsh_script(const Commands& commands) {
  std::string summaries, branches;
  for (const CommandEntry& command : commands) {
    if (command.name.empty()) continue;
    summaries +=
        cat("    ", shell_word(cat(command.name, ":", zsh_escaped(command.summary))), "\n");
    branches +=
        cat("    ", command.name, ")\n      _arguments -S", zsh_arguments(command), " ;;\n");
  }
  return cat(
      "#compdef troupe\n"
      "_troupe() {\n"
      "  local -a commands\n"
      "  commands=(\n",
      summaries,
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=${words[2]}\n"
      "  local separator=${words[(i)--]}\n"
      "  if [[ $command == launch ]] && ((separator < CURRENT)); then command=train; fi\n"
      "  case $command in\n",
      branches,
      "  esac\n"
      "}\n"
      "_troupe \"$@\"\n");
}

std::string fish_script(const Commands& commands) {
  std::string out = "# fish completion of troupe\n";
  const std::string all = join(names(commands), " ");
  for (const CommandEntry& command : commands) {
    if (command.name.empty()) continue;
    out +=
        cat("complete -c troupe -f -n ", shell_word(cat("not __fish_seen_subcommand_from ", all)),
            " -a ", command.name, " -d ", shell_word(command.summary), "\n");
    for (const OptionEntry& option : command.options) {
      std::string line =
          cat("complete -c troupe -n ", shell_word("__fish_seen_subcommand_from " + command.name));
      if (option.names.empty()) continue;
      for (const auto& name : option.names)
        line += name.starts_with("--") ? cat(" -l ", name.substr(2)) : cat(" -s ", name.substr(1));
      if (!option.argument.empty()) line += option.choices.empty() ? " -r" : " -x";
      if (!option.choices.empty()) line += cat(" -a ", shell_word(join(option.choices, " ")));
      out += cat(line, " -d ", shell_word(option.help), "\n");
    }
  }
  return out;
}

}  // namespace

std::string completion_script(Shell shell, const Commands& commands) {
  switch (shell) {
    case Shell::bash:
      return bash_script(commands);
    case Shell::zsh:
      return zsh_script(commands);
    case Shell::fish:
      return fish_script(commands);
  }
  return "";
}

}  // namespace troupe::launch::commands
