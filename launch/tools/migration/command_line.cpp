#include "launch/tools/migration/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "launch/tools/migration/import.h"

namespace troupe::launch::tools::migration {

void add_import(CLI::App& app, std::function<int()>& action) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand(
      "import", "Convert a run of TRL, LLaMA-Factory, verl, OpenRLHF or MindSpeed into a run file");
  command->add_option("input", options->words,
                      "a YAML or JSON file, a shell script (.sh) with its arguments, or `--` and "
                      "a command line");
  command
      ->add_option("--env", options->environment,
                   "NAME=VALUE: a variable that a script takes from its environment, or that could "
                   "not be evaluated")
      ->expected(1)
      ->take_all();
  command->add_option("--tool", options->tool, "trl, llama-factory, verl, openrlhf or mindspeed");
  command->add_option("--algorithm", options->algorithm,
                      "the method, where the settings do not say it");
  command
      ->add_option("--devices", options->devices,
                   "devices of the run, a factor of the batch; default: those that the command "
                   "line starts, or 1")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--output", options->output, "the run file; default: stdout");
  command->add_flag("--command", options->only_command,
                    "print the command that a script starts, with its words evaluated, instead");
  command->add_option("--table", options->table,
                      "print all settings of a tool and their equivalents instead");
  command->footer(
      "The report on stderr has a line for each setting. Exit code 2: the run file is not "
      "complete, or a value could not be used; "
      "3: a value could not be evaluated; 6: a file of another tool; the last line has the "
      "reason.\nExample:\n  troupe import "
      "llama3_lora_sft.yaml --output run.yaml\n  troupe import -- deepspeed --module "
      "openrlhf.cli.train_dpo --pretrain DIR ...");
  command->callback([options, &action] { action = [options] { return import_run(*options); }; });
}

}  // namespace troupe::launch::tools::migration
