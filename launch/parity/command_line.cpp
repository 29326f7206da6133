#include "launch/parity/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"
#include "launch/commands/arguments.h"
#include "launch/commands/options.h"
#include "launch/parity/parity.h"
#include "launch/parity/paths.h"

namespace troupe::launch::parity {
namespace {

using engine::ops::Precision;

std::vector<std::string> path_names() {
  std::vector<std::string> out;
  for (const Path& path : paths()) out.emplace_back(path.name);
  return out;
}

void add_model(CLI::App& command, ParityOptions& o) {
  commands::path_option(
      command.add_option("--model", o.model.model,
                         "Hugging Face model directory, or a LoRA adapter's that names its base"));
  commands::path_option(command.add_option("--adapter", o.model.adapter,
                                           "directory of a PEFT adapter for the model"));
  const auto take = [&o](const std::vector<std::string>& given) {
    const auto names = names_of(Precision());
    o.dtypes.clear();
    for (const std::string& each : given)
      o.dtypes.push_back(static_cast<Precision>(std::ranges::find(names, each) - names.begin()));
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--dtype", take,
          "f32,bf16: data types of matrix multiplications, each compared by itself")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"f32", "bf16"}));
  command
      .add_option("--threads", o.model.threads,
                  "number of threads; 0: all available cores; does not change results")
      ->check(CLI::Range(0, 1024));
  commands::add_overrides(command, o.model.overrides);
}

void add_texts(CLI::App& command, ParityOptions& o) {
  CLI::Option* data = commands::path_option(
      command.add_option("--data", o.data, "prompts: JSON lines with \"text\" or \"ids\""));
  command.add_option("--samples", o.samples, "number of texts that begin with random tokens")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->excludes(data);
  command
      .add_option("--max-new-tokens", o.max_new_tokens,
                  "tokens by which the model continues each prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  const auto targets = [&o](const std::string& given) {
    const bool is_number = !given.empty() && given.size() < 10 &&
                           given.find_first_not_of("0123456789") == std::string::npos;
    if (given != "all" && !is_number)
      throw commands::ArgumentProblem(
          cat("--targets: expected all or a number from 0, found ", quote(given)));
    o.targets = given == "all" ? -1 : std::stoll(given);
  };
  command.add_option_function<std::string>("--targets", targets,
                                           "tokens of the vocabulary that are compared at some "
                                           "positions: all, or a number; default: 64");
}

}  // namespace

void add_parity(CLI::App& app, std::function<int()>& action) {
  auto o = std::make_shared<ParityOptions>();
  CLI::App* command = app.add_subcommand(
      "parity",
      "Compare generation, scoring, training and grids of ranks of a model, to the last bit");
  add_model(*command, *o);
  add_texts(*command, *o);
  command
      ->add_option(
          "--set", o->sets,
          "KEY=VALUE of rollout.* (sampling) or parallel.* (the grid that is compared with "
          "one rank); may be given several times; --set may be left out")
      ->allow_extra_args(false);
  command
      ->add_option("--paths", o->paths,
                   "comma-separated paths that are compared with score; default: all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(path_names()));
  command->add_flag("--locate", o->locate,
                    "name the first operation of a broken promise and its layer; takes 8 bytes for "
                    "each row of each operation");
  command->add_flag("--json", o->json, "print one JSON object");
  commands::path_option(command->add_option(
      "--table", o->table, "print docs/parity.md for the model folders in this folder instead"));
  command->footer(
      "Exit code 15: a promise is broken; the pair, the text, the position, the token and both "
      "values are printed.\nmpirun -n N: the ranks of the grid; without it they are threads.\n"
      "docs/parity.md lists the paths and what they promise.");
  command->callback([o, &action] {
    if (o->model.model.empty() && o->table.empty()) throw CLI::RequiredError("--model or --table");
    action = [o] { return parity(*o); };
  });
}

}  // namespace troupe::launch::parity
