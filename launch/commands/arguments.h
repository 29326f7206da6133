// The words of a command line: settings without --set, and what is wrong with the words that the
// parser refuses.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace troupe::launch::commands {

/// Puts --set in front of each "key=value" among the words of a command that has that option, and
/// --model-overrides in front of each "model_overrides.KEY=VALUE" of one that has only that.
/// `words` follow the command's name.
std::vector<std::string> with_set(const CLI::App& command, const std::vector<std::string>& words);

/// The error of parsing `words`, the words after the command's name: for an unknown option, the one
/// that is meant, the setting of that name, or what another tool's option is here.
std::string parse_problem(const CLI::App& command, const std::vector<std::string>& words,
                          const CLI::ParseError& error);

const CLI::App* find_command(const CLI::App& program, const std::string& name);

/// Reports a parse error on stderr and returns the exit code. `words`: those after the command's
/// name. For an unknown command it names the known ones: the parser itself would only say that a
/// command is required.
int report_parse_error(const CLI::App& program, const std::vector<std::string>& words,
                       const CLI::ParseError& error);

/// An error whose text is complete, for callbacks.
class ArgumentProblem : public CLI::ParseError {
 public:
  explicit ArgumentProblem(std::string text);
  static constexpr const char* name = "ArgumentProblem";
};

}  // namespace troupe::launch::commands
