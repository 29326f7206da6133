#include "launch/megatron/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "launch/megatron/flags.h"
#include "launch/megatron/training.h"

namespace troupe::launch::megatron {
namespace {

void add_training(CLI::App& app, std::function<int()>& action, const std::string& name) {
  CLI::App* command = app.add_subcommand(name, "Train with the flags of Megatron's script " + name);
  // The flags have a table of their own; CLI11 leaves them as they are.
  command->group("")->prefix_command();
  command->footer("`troupe flags` lists the flags. Words key=value set keys of a run as well.");
  command->callback([command, name, &action] {
    action = [name, words = command->remaining()] { return train_gpt(name, words); };
  });
}

}  // namespace

bool trains(std::string_view command) {
  return command == "pretrain_gpt" || command == "posttrain_gpt";
}

void add_programs(CLI::App& app, std::function<int()>& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "flags", "List the flags of Megatron's scripts: what acts, is already so, or is refused");
  command->add_flag("--json", *as_json, "print a JSON object for each flag");
  command->footer("Columns: flag, class, the key that it sets, and a remark.");
  command->callback([as_json, &action] { action = [as_json] { return list_flags(*as_json); }; });
  add_training(app, action, "pretrain_gpt");
  add_training(app, action, "posttrain_gpt");
}

}  // namespace troupe::launch::megatron
