// The commands and options of the program as data, for man pages and shell completions.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace troupe::launch::commands {

struct OptionEntry {
  std::vector<std::string> names;    ///< "--set", "-h"; empty for a positional argument
  std::string argument;              ///< "TEXT", the name of a positional argument; empty: a flag
  std::vector<std::string> choices;  ///< values to offer; empty: file names
  std::string help;
};

struct CommandEntry {
  std::string name;  ///< "" for the program itself
  std::string summary;
  std::string footer;
  std::vector<OptionEntry> options;
};

/// The program first, then its commands in the order of --help, without hidden ones.
std::vector<CommandEntry> command_table(const CLI::App& program);

}  // namespace troupe::launch::commands
