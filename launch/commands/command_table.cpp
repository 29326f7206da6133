#include "launch/commands/command_table.h"

#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::commands {
namespace {

/// The values of "TEXT:{full,int8}", a type name of CLI11 with an IsMember check.
std::vector<std::string> listed_values(const std::string& type_name) {
  std::vector<std::string> values;
  const auto open = type_name.find('{'), close = type_name.find('}');
  if (open == std::string::npos || close == std::string::npos) return values;
  std::string_view rest = std::string_view(type_name).substr(open + 1, close - open - 1);
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    values.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return values;
}

std::vector<std::string> choices_of(const std::string& name, const std::string& type_name) {
  if (name == "--algorithm") return recipes::algorithm_names();
  if (name != "--set") return listed_values(type_name);
  std::vector<std::string> settings;
  for (const config::Field& field : config::fields()) settings.push_back(field.key + "=");
  return settings;
}

OptionEntry option_entry(const CLI::Option& option) {
  OptionEntry out;
  for (const auto& name : option.get_snames()) out.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) out.names.push_back("--" + name);
  out.help = option.get_description();
  const std::string type_name = option.get_type_name();
  if (option.get_positional()) {
    out.names.clear();
    out.argument = option.get_name(true, false);
  } else if (option.get_items_expected_max() > 0) {
    out.argument = type_name.substr(0, type_name.find_first_of(":= "));
    if (out.argument.empty()) out.argument = "VALUE";
  }
  out.choices = choices_of(out.names.empty() ? "" : out.names.back(), type_name);
  return out;
}

CommandEntry command_entry(const CLI::App& command, std::string name) {
  CommandEntry out{std::move(name), command.get_description(), command.get_footer(), {}};
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty()) out.options.push_back(option_entry(*option));
  return out;
}

}  // namespace

std::vector<CommandEntry> command_table(const CLI::App& program) {
  std::vector<CommandEntry> out{command_entry(program, "")};
  const auto is_listed = [](const CLI::App* command) {
    return !command->get_name().empty() && !command->get_group().empty();
  };
  for (const CLI::App* command : program.get_subcommands(is_listed))
    out.push_back(command_entry(*command, command->get_name()));
  return out;
}

}  // namespace troupe::launch::commands
