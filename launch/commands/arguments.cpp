#include "launch/commands/arguments.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>

#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/model/model_overrides.h"
#include "launch/run/exit_code.h"
#include "launch/tools/tables/advice.h"
#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::commands {
namespace {

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

std::string option_part(const std::string& word) {
  return word.substr(0, word.find('='));
}

const CLI::Option* find_option(const CLI::App& command, const std::string& word) {
  return command.get_option_no_throw(option_part(word));
}

bool takes_value(const CLI::App& command, const std::string& word) {
  const CLI::Option* option = find_option(command, word);
  return option && option->get_items_expected_max() > 0 && word.find('=') == std::string::npos;
}

/// "train.steps=5"; not "a b=c", "/x=y" or "=z".
bool is_setting(const std::string& word) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  const auto in_key = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  };
  return (word[0] < '0' || word[0] > '9') && word[0] != '.' &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), in_key);
}

/// What an unknown option means, to be written after its name; or "".
std::string meaning(const CLI::App& command, const std::string& option) {
  const std::string key = tools::tables::normal_name(option);
  const bool settings = command.get_option_no_throw("--set") != nullptr;
  if (settings && config::find_field(key)) return cat("; it is a setting: --set ", key, "=VALUE");
  const std::string theirs = settings ? tools::tables::advice(key, {}) : "";
  if (!theirs.empty()) return cat("; ", theirs, " (settings are written --set KEY=VALUE)");
  std::vector<std::string> known;
  for (const CLI::Option* each : command.get_options())
    for (const auto& name : each->get_lnames()) known.push_back("--" + name);
  if (const std::string near = nearest(option, known); !near.empty())
    return cat("; did you mean ", near, "?");
  const std::string near = settings ? config::nearest_key(key) : "";
  return near.empty() ? "" : cat("; did you mean --set ", near, "=VALUE?");
}

std::string unknown_option(const CLI::App& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return "";
    if (is_option(word) && !find_option(command, word))
      return cat("unknown option ", option_part(word), meaning(command, option_part(word)));
  }
  return "";
}

std::string unexpected_argument(const CLI::App& command, const std::vector<std::string>& words) {
  bool value = false;
  for (const std::string& word : words) {
    if (!is_option(word) && !value)
      return cat("unexpected argument ", quote(word),
                 command.get_option_no_throw("--set")
                     ? "; options begin with --, settings are written key=value"
                     : "");
    value = is_option(word) && takes_value(command, word);
  }
  return "";
}

/// The problem of a command line whose command is known: the words after the command's name.
int report_problem(const CLI::App& command, const std::vector<std::string>& words,
                   const CLI::ParseError& error) {
  const bool no_dashes = command.get_name() == "launch" &&
                         std::ranges::find(words, "train") != words.end() &&
                         std::ranges::find(words, "--") == words.end();
  std::fprintf(stderr, "troupe: %s\n",
               no_dashes ? "launch: `--` is missing before train: troupe launch --cluster FILE -- "
                           "train ..."
                         : for_terminal(parse_problem(command, words, error)).c_str());
  std::fprintf(stderr, "`troupe %s --help` lists the options.\n", command.get_name().c_str());
  return run::exit_usage;
}

}  // namespace

std::vector<std::string> with_set(const CLI::App& command, const std::vector<std::string>& words) {
  const bool settings = command.get_option_no_throw("--set") != nullptr,
             overrides = command.get_option_no_throw("--model-overrides") != nullptr;
  if (!settings && !overrides) return words;
  std::vector<std::string> out;
  bool value = false;
  for (const std::string& word : words) {
    if (!is_option(word) && !value && is_setting(word)) {
      if (settings)
        out.emplace_back("--set");
      else if (word.starts_with(config::override_prefix))
        out.emplace_back("--model-overrides");
    }
    out.push_back(word);
    value = is_option(word) && takes_value(command, word);
  }
  return out;
}

namespace {

// "--temperature: a number is expected, found "hot"" for the parser's "Could not convert:
// --temperature = hot". "" for another text.
std::string unconverted(const CLI::App& command, const std::string& message) {
  constexpr std::string_view before = "Could not convert: ";
  const auto equals = message.find(" = ");
  if (!message.starts_with(before) || equals == message.npos) return "";
  const std::string name = message.substr(before.size(), equals - before.size());
  const CLI::Option* option = command.get_option_no_throw(name);
  const std::string type = option ? option->get_type_name() : "";
  return cat(name, ": ",
             type.starts_with("FLOAT")                             ? "a number"
             : type.starts_with("UINT") || type.starts_with("INT") ? "a whole number"
                                                                   : "another value",
             " is expected, found ", quote(message.substr(equals + 3), 60));
}

}  // namespace

std::string parse_problem(const CLI::App& command, const std::vector<std::string>& words,
                          const CLI::ParseError& error) {
  if (error.get_name() == ArgumentProblem::name) return error.what();
  // The parser would first ask for what is required.
  std::string problem = unknown_option(command, words);
  if (problem.empty() && dynamic_cast<const CLI::ExtrasError*>(&error))
    problem = unexpected_argument(command, words);
  if (problem.empty() && dynamic_cast<const CLI::ConversionError*>(&error))
    problem = unconverted(command, error.what());
  if (problem.empty()) problem = error.what();
  return cat(command.get_name(), ": ", problem);
}

ArgumentProblem::ArgumentProblem(std::string text)
    : CLI::ParseError(name, std::move(text), run::exit_usage) {
}

const CLI::App* find_command(const CLI::App& program, const std::string& name) {
  const auto found =
      program.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found[0];
}

int report_parse_error(const CLI::App& program, const std::vector<std::string>& words,
                       const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return program.exit(error);
  const auto unparsed = program.remaining();
  if (!program.get_subcommands().empty())
    return report_problem(*program.get_subcommands().front(), words, error);
  if (error.get_name() == "RequiredError" && words.empty() && unparsed.empty()) {
    std::fputs(program.help().c_str(), stderr);
    return run::exit_usage;
  }
  if (error.get_name() != "RequiredError" || unparsed.empty()) {
    std::fprintf(stderr, "troupe: %s\n`troupe --help` lists the commands.\n",
                 for_terminal(error.what()).c_str());
    return run::exit_usage;
  }
  std::vector<std::string> known;
  for (const auto* command : program.get_subcommands([](const CLI::App* each) {
         return !each->get_name().empty() && !each->get_group().empty();
       }))
    known.push_back(command->get_name());
  const std::string meant = nearest(unparsed.front(), known);
  std::fprintf(stderr, "troupe: unknown command %s; available commands: %s%s\n",
               quote(unparsed.front()).c_str(), join(known, ", ").c_str(),
               meant.empty() ? "" : cat("; did you mean ", meant, "?").c_str());
  return run::exit_usage;
}

}  // namespace troupe::launch::commands
