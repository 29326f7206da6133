#include "launch/commands/explain_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <optional>

#include "engine/base/text/text.h"
#include "launch/cluster/launcher.h"
#include "launch/commands/arguments.h"
#include "launch/commands/options.h"
#include "launch/commands/version.h"

namespace troupe::launch::commands {

namespace {

void add_machine(CLI::App& command, MachineOptions& machine) {
  CLI::Option* gflops = command.add_option(
      "--gflops", machine.gflops,
      "estimate for a machine whose matrix products reach this many GFLOP/s on all cores");
  gflops->check(CLI::Range(1e-3, 1e9));
  command
      .add_option("--cores", machine.cores,
                  "estimate for a machine with this many cores; without --gflops in proportion to "
                  "the measured rate")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--memory", machine.memory,
                  "estimate for a machine with this much memory, such as 256GiB")
      ->transform(CLI::AsSizeValue(false));
  command
      .add_flag("--measure", machine.measure,
                "measure the FLOP/s of this machine again (docs/memory.md)")
      ->excludes(gflops);
}

/// Parses the words of the command after `--`, whose options `command` has.
void parse_rest(CLI::App& command, const std::vector<std::string>& arguments) {
  const std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  auto reversed = with_set(command, words);
  std::reverse(reversed.begin(), reversed.end());
  try {
    command.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    throw;
  } catch (const CLI::ParseError& error) {
    throw ArgumentProblem(cat("launch: ", parse_problem(command, words, error)));
  }
}

}  // namespace

void add_explain_options(CLI::App& command, ExplainOptions& options) {
  add_sources(command, options.sources);
  command.add_flag("--reference", options.reference,
                   "print the reference of all configuration keys instead");
  command.add_flag("--request-fields", options.request_fields,
                   "print the fields of requests to a server instead");
  command.add_flag("--all", options.all, "print the keys that have their defaults, too");
  command.add_flag("!--no-data", options.data, "do not read the data, and do not estimate the run");
  command
      .add_option("--examples", options.examples,
                  "print the first N examples as JSON lines instead: their texts with roles, and "
                  "what is trained on")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  add_machine(command, options.machine);
}

namespace {

std::optional<cluster::Via> via_of(const std::string& name) {
  const auto names = names_of(cluster::Via());
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<cluster::Via>(found - names.begin());
}

}  // namespace

std::function<int()> launch_action(const LaunchArguments& arguments) {
  const std::string& name = arguments.words.front();
  CLI::App command("the run", name);
  if (name == "explain") {
    ExplainOptions options{
        .sources = {}, .cluster = arguments.cluster, .via = via_of(arguments.via)};
    add_explain_options(command, options);
    add_logging(command);
    parse_rest(command, arguments.words);
    return [options] { return explain(options); };
  }
  if (name != "train")
    throw ArgumentProblem(cat("launch: can only start train or explain; found ", quote(name)));
  cluster::LaunchOptions options{.cluster = arguments.cluster,
                                 .sources = {},
                                 .via = via_of(arguments.via),
                                 .build = build_text()};
  add_sources(command, options.sources);
  bool only_dry_run = false;
  command.add_flag("--dry-run", only_dry_run, "not with launch");
  add_logging(command);
  parse_rest(command, arguments.words);
  if (!arguments.write_sbatch.empty()) {
    if (options.via.value_or(cluster::Via::slurm) != cluster::Via::slurm)
      throw ArgumentProblem(
          cat("launch: --write-sbatch: expected --via slurm, found --via ", arguments.via));
    options.via = cluster::Via::slurm;
    options.write_sbatch = arguments.write_sbatch;
    options.words = arguments.words;
  }
  if (only_dry_run)
    throw ArgumentProblem(
        "launch: --dry-run is not supported; `troupe train --dry-run` runs one step in one "
        "process");
  return [options] { return cluster::launch(options); };
}

}  // namespace troupe::launch::commands
