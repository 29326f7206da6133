#include "launch/tools/megatron/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "engine/base/text/text.h"
#include "launch/tools/megatron/evaluation.h"
#include "launch/tools/megatron/flags.h"
#include "launch/tools/megatron/inference.h"
#include "launch/tools/megatron/training.h"

namespace troupe::launch::tools::megatron {
namespace {

using Words = std::vector<std::string>;

/// A command that takes Megatron's flags, which have a table of their own: CLI11 leaves them as
/// they are.
void add_program(CLI::App& app, std::function<int()>& action, const std::string& name,
                 const std::string& what, const std::function<int(const Words&)>& run) {
  CLI::App* command = app.add_subcommand(name, what);
  command->group("")->prefix_command();
  command->footer("`troupe flags` lists the flags.");
  command->callback([command, run, &action] {
    action = [run, words = command->remaining()] { return run(words); };
  });
}

void add_training(CLI::App& app, std::function<int()>& action, const std::string& name) {
  add_program(app, action, name,
              cat("Train with the flags of Megatron's script ", name,
                  "; words key=value set keys of a run as well"),
              [name](const Words& words) { return train_gpt(name, words); });
}

}  // namespace

bool trains(std::string_view command) {
  return command == "pretrain_gpt" || command == "posttrain_gpt";
}

void add_programs(CLI::App& app, std::function<int()>& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("flags",
                                         "List the flags of Megatron's scripts: what acts, is "
                                         "already so, has no effect, or is refused");
  command->add_flag("--json", *as_json, "print a JSON object for each flag");
  command->footer("Columns: flag, class, the key that it sets, and a remark.");
  command->callback([as_json, &action] { action = [as_json] { return list_flags(*as_json); }; });
  add_training(app, action, "pretrain_gpt");
  add_training(app, action, "posttrain_gpt");
  add_program(app, action, "inference",
              "Answer a prompt and chat with the flags of MindSpeed-LLM's script inference",
              inference);
  add_program(
      app, action, "evaluation",
      "Evaluate a model on public tasks with the flags of MindSpeed-LLM's script evaluation",
      evaluation);
}

}  // namespace troupe::launch::tools::megatron
