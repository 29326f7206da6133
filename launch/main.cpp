// The command line: parses the options of each command and calls its function (launch/commands).
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>

#include "actors/sandbox/helper.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/files/mapped_file_faults.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/memory/uncaught_bad_alloc.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "launch/audit/audit.h"
#include "launch/cluster/launcher.h"
#include "launch/cluster/network_namespace.h"
#include "launch/cluster/worker.h"
#include "launch/commands/arguments.h"
#include "launch/commands/chat.h"
#include "launch/commands/completion.h"
#include "launch/commands/explain.h"
#include "launch/commands/explain_options.h"
#include "launch/commands/generate.h"
#include "launch/commands/info.h"
#include "launch/commands/man_page.h"
#include "launch/commands/merge.h"
#include "launch/commands/options.h"
#include "launch/commands/render.h"
#include "launch/commands/score.h"
#include "launch/commands/script_launcher.h"
#include "launch/commands/serve/command_line.h"
#include "launch/commands/status.h"
#include "launch/commands/train.h"
#include "launch/commands/version.h"
#include "launch/parity/command_line.h"
#include "launch/recipes/recipes.h"
#include "launch/run/exit_code.h"
#include "launch/tools/convert/command_line.h"
#include "launch/tools/megatron/command_line.h"
#include "launch/tools/megatron/training.h"
#include "launch/tools/migration/command_line.h"
#include "launch/tools/preprocess/command_line.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {

namespace {

using Action = std::function<int()>;

void add_train(CLI::App& app, Action& action) {
  auto sources = std::make_shared<recipes::Sources>();
  CLI::App* command = app.add_subcommand(
      "train",
      "Train a model: fine-tuning, preference optimization, reward models, reinforcement learning");
  commands::add_sources(*command, *sources);
  auto only_dry_run = std::make_shared<bool>(false);
  command->add_flag("--dry-run", *only_dry_run,
                    "run one step with its evaluation and checkpoint, report it, and keep nothing");
  command->footer(
      "Example:\n  troupe train --algorithm sft --model DIR --data rows.jsonl --output runs/first "
      "--steps 100 --set train.batch_size=16\n"
      "Run the same command again to resume. `troupe explain` with the same options shows the "
      "resolved configuration.");
  command->callback([sources, only_dry_run, &action] {
    action = [sources, only_dry_run] { return commands::train(*sources, *only_dry_run); };
  });
}

void add_launch(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::LaunchArguments>();
  CLI::App* command = app.add_subcommand(
      "launch", "Train with several groups of processes: launch --cluster FILE -- train ...");
  command
      ->add_option("--cluster", options->cluster,
                   "YAML file with the groups of the run, and its hosts (docs/operations.md)")
      ->required();
  const auto ways = names_of(cluster::Via());
  command
      ->add_option("--via", options->via,
                   "how groups are started: local, all on this host; ssh, on the hosts of the "
                   "cluster file (the default where it has some); slurm, as steps of the "
                   "allocation that this command runs in")
      ->check(CLI::IsMember(std::vector<std::string>(ways.begin(), ways.end())));
  command->add_option("--write-sbatch", options->write_sbatch,
                      "write a script for sbatch, which runs this command with --via slurm, to "
                      "this file, and start nothing");
  command->add_option("command", options->words, "train or explain, and its options")->required();
  command->footer(
      "Example:\n  troupe launch --cluster cluster.yaml -- train --algorithm grpo --config "
      "run.yaml\n"
      "Run the same command again to resume.");
  command->callback([options, &action] { action = commands::launch_action(*options); });
}

/// Started by launch; hidden from --help.
void add_worker(CLI::App& app, Action& action) {
  auto timeout = std::make_shared<std::int64_t>(0);
  CLI::App* command = app.add_subcommand("worker", "One process of a launch")->group("");
  command->add_option("--timeout", *timeout);
  command->callback([timeout, &action] {
    action = [timeout] { return cluster::worker(*timeout, commands::build_text()); };
  });
}

/// Used by launch and launch/mpirun.sh; hidden from --help.
void add_loopback(CLI::App& app, Action& action) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand(
      "loopback", "Run a command in a network namespace with only the loopback interface");
  command->group("")->add_option("command", *words, "the command and its arguments, after --");
  command->callback(
      [words, &action] { action = [words] { return cluster::run_in_network_namespace(*words); }; });
}

void add_generate(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::GenerateOptions>();
  CLI::App* command = app.add_subcommand(
      "generate", "Generate completions: JSON lines from stdin to stdout, or --prompt TEXT");
  commands::add_model(*command, options->model);
  commands::add_overrides(*command, options->model.overrides);
  commands::add_sampling(*command, *options);
  commands::add_task(*command, *options);
  commands::add_template(*command, *options);
  const auto returned = [options](std::int64_t count) {
    options->settings.set("num_return_sequences", count);
  };
  command
      ->add_option_function<std::int64_t>("--n", returned,
                                          "completions per prompt; above 1 the output line is "
                                          "{\"samples\": [...]}")
      ->check(CLI::Range(1, engine::generate::max_return_sequences));
  CLI::Option* prompt = command->add_option("--prompt", options->prompt,
                                            "a prompt; its completion is streamed to stdout");
  command->footer(
      "Input lines: {\"prompt\": TEXT}, {\"ids\": [...]} or {\"messages\": [...], \"tools\"?}. "
      "Output "
      "lines: {\"ids\", \"text\", "
      "\"logprobs\", \"finish_reason\"}.\n"
      "Sampling settings come from the model's generation_config.json (greedy if there is none), "
      "the options\nand the input line; later ones take precedence. docs/formats.md lists them.");
  command->callback([options, prompt, &action] {
    options->has_prompt = prompt->count() > 0;
    action = [options] { return commands::generate(*options); };
  });
}

void add_chat(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::ChatOptions>();
  CLI::App* command = app.add_subcommand(
      "chat", "Chat with a model: /help lists the commands, Ctrl-C stops a reply, Ctrl-D exits");
  commands::add_model(*command, options->model);
  commands::add_overrides(*command, options->model.overrides);
  commands::add_sampling(*command, *options);
  commands::add_template(*command, *options);
  commands::add_server(*command, *options);
  command->add_option("--system", options->system, "system message");
  command
      ->add_option("--history-turns", options->history_turns,
                   "earlier turns that are sent with a message; 0: all that fit into the context")
      ->check(CLI::Range(0, 1 << 20));
  command->callback(
      [options, &action] { action = [options] { return commands::chat(*options); }; });
}

void add_score(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::ScoreOptions>();
  CLI::App* command = app.add_subcommand(
      "score", "Evaluate a reward model on preference pairs: accuracy, margin, calibration");
  commands::add_model(*command, options->model);
  commands::add_overrides(*command, options->model.overrides);
  command
      ->add_option("--data", options->data,
                   "files of preference pairs, in any format of --algorithm orm")
      ->required();
  command->add_option("--max-length", options->max_length,
                      "drop pairs with a longer sequence; 0: the model's maximum length");
  command
      ->add_option("--bins", options->bins,
                   "calibration bins over the confidence sigmoid(|margin|), from 0.5 to 1")
      ->check(CLI::Range(1, 1000));
  command->footer(
      "Output: one line, {\"pairs\", \"accuracy\", \"margin\", \"mean\", \"std\" (of the scores), "
      "\"calibration_error\", \"bins\"}.\nThe calibration error is the sum over bins of "
      "(pairs in the bin / all pairs) |accuracy - mean confidence|.");
  command->callback(
      [options, &action] { action = [options] { return commands::score(*options); }; });
}

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::EvalOptions>();
  CLI::App* command = app.add_subcommand(
      "eval", "Evaluate a model on prompts with reward rules, or on public tasks");
  commands::add_model(*command, options->model);
  commands::add_evaluation(*command, *options);
  command->footer(
      "Example:\n  troupe eval --model runs/first/latest --data test.jsonl --reward exact_match "
      "--output answers.jsonl\n  troupe eval --model DIR --task mmlu,gsm8k --task-data DATA "
      "--output results\nPrints each value with its confidence interval of 95 % "
      "(docs/evaluation.md). Run the same command again to\ncontinue an interrupted evaluation.");
  command->callback(
      [options, &action] { action = [options] { return commands::eval(*options); }; });
}

void add_tokenize(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::TokenizeOptions>();
  CLI::App* command = app.add_subcommand(
      "tokenize", "Tokenize text: {\"text\"} to {\"ids\"}; with --decode {\"ids\"} to {\"text\"}");
  command->add_option("--model", options->model, "folder with tokenizer.json, or the file itself")
      ->required();
  command->add_flag("--special", options->special,
                    "add the special tokens of the post-processor, such as BOS");
  command->add_flag("--decode", options->decode,
                    "decode {\"ids\"} to {\"text\"}; skips special tokens");
  command->add_flag_callback(
      "--transformers5",
      [options] { options->ids = engine::tokenizer::TokenizerIds::transformers5; },
      "the ids of transformers 5 for the class LlamaTokenizer (tokenizer_ids)");
  command->callback(
      [options, &action] { action = [options] { return commands::tokenize(*options); }; });
}

void add_render(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::RenderOptions>();
  CLI::App* command = app.add_subcommand("render",
                                         "Apply a chat template: {\"messages\"} to {\"text\", "
                                         "\"assistant_spans\"}");
  CLI::Option* model =
      command->add_option("--model", options->model, "model directory with a chat template");
  CLI::Option* file =
      command->add_option("--template", options->template_file, "file with a Jinja template")
          ->excludes(model);
  command
      ->add_option("--prompt-type", options->prompt_type,
                   "a prompt type of MindSpeed, or templates.json#NAME; with --model it uses that "
                   "directory's special tokens")
      ->excludes(file);
  command->footer(
      "Input lines: {\"messages\", \"tools\"?, \"documents\"?, \"add_generation_prompt\"?, "
      "\"bos_token\"?, \"eos_token\"?, \"kwargs\"?, "
      "\"now\"?}.");
  command->callback([options, &action] {
    if (options->model.empty() && options->template_file.empty() && options->prompt_type.empty())
      throw CLI::RequiredError("--model, --template or --prompt-type");
    action = [options] { return commands::render(*options); };
  });
}

void add_logprobs(CLI::App& app, Action& action) {
  auto options = std::make_shared<model::ModelOptions>();
  CLI::App* command = app.add_subcommand(
      "logprobs", "Compute log-probabilities: {\"ids\"} or {\"text\"} to {\"logprobs\", \"nll\"}");
  commands::add_model(*command, *options);
  commands::add_overrides(*command, options->overrides);
  command->footer(
      "logprobs: one per token; the first is null. nll: their negative sum in nats. Special tokens "
      "are added to text.");
  command->callback(
      [options, &action] { action = [options] { return commands::logprobs(*options); }; });
}

void add_explain(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain",
      "Show the resolved configuration of a run with origins, its loss, model, memory and data");
  commands::add_explain_options(*command, *options);
  command->callback(
      [options, &action] { action = [options] { return commands::explain(*options); }; });
}

void add_merge(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::MergeOptions>();
  CLI::App* command =
      app.add_subcommand("merge", "Merge a LoRA or DoRA adapter into its base model");
  commands::path_option(command->add_option("--model", options->model,
                                            "Hugging Face model directory of the base model"))
      ->required();
  commands::path_option(
      command->add_option("--adapter", options->adapter,
                          "directory with adapter_config.json, such as a run's checkpoint"))
      ->required();
  commands::path_option(
      command->add_option("--output", options->output, "new directory for the merged model"))
      ->required();
  command
      ->add_option("--dtype", options->dtype, "f32, bf16 or f16: data type of the stored weights")
      ->capture_default_str();
  commands::add_overrides(*command, options->overrides);
  command->callback(
      [options, &action] { action = [options] { return commands::merge(*options); }; });
}

void add_info(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::InfoOptions>();
  CLI::App* command = app.add_subcommand("info",
                                         "Inspect and check a model, tokenizer, data file, run or "
                                         "checkpoint");
  command->add_option("path", options->path, "file or directory");
  command->add_flag("--models", options->models,
                    "list MindSpeed-LLM's dense models and the architecture that loads each");
  command
      ->add_option(
          "--column-names", options->column_names,
          "a,b,...: column names of csv and tsv files without a header (data.column_names)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--checksums", options->checksums,
                      "compare the folder's files with a list of SHA-256 sums, as sha256sum writes "
                      "it; exit code 5 if a file differs, is missing or is not in the list");
  command->add_flag("--json", options->json, "print one JSON object");
  commands::add_overrides(*command, options->overrides);
  command->callback(
      [options, &action] { action = [options] { return commands::info(*options); }; });
}

void add_audit(CLI::App& app, Action& action) {
  auto options = std::make_shared<audit::AuditOptions>();
  CLI::App* command = app.add_subcommand(
      "audit", "Examine the ledger of a run: that no sample was lost, trained twice or too old");
  commands::path_option(
      command->add_option("run", options->run, "output directory of a run")->required());
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &action] { action = [options] { return audit::audit(*options); }; });
}

void add_status(CLI::App& app, Action& action) {
  auto options = std::make_shared<commands::StatusOptions>();
  CLI::App* command = app.add_subcommand(
      "status", "Show what the processes of a running launch do, and what each waits for");
  commands::path_option(
      command->add_option("run", options->run, "output directory of a run")->required());
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback(
      [options, &action] { action = [options] { return commands::status(*options); }; });
}

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes commands and options");
  command->add_option("shell", *shell, "the shell: bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("Example:\n  source <(troupe completion bash)");
  command->callback([shell, &app, &action] {
    action = [shell, &app] {
      for (const commands::Shell each :
           {commands::Shell::bash, commands::Shell::zsh, commands::Shell::fish})
        if (*shell == name_of(each))
          std::cout << commands::completion_script(each, commands::command_table(app));
      return 0;
    };
  });
}

void add_man(CLI::App& app, Action& action) {
  struct Options {
    std::string command;
    bool list = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("man", "Print a manual page: troupe man train | man -l -");
  command->add_option("command", options->command, "the command; none: the program");
  command->add_flag("--list", options->list, "print the names of the commands instead");
  command->callback([options, &app, &action] {
    action = [options, &app] {
      const auto commands = commands::command_table(app);
      if (!options->list)
        std::cout << commands::man_page(options->command, commands, commands::version_line());
      for (const commands::CommandEntry& each : commands)
        if (options->list && !each.name.empty()) std::cout << each.name << '\n';
      return 0;
    };
  });
}

/// Prints why the command failed to stderr and the log file; returns `code`.
int report(std::string_view why, int code) {
  log_to_file(LogLevel::error, why);
  transports::mpi::let_rank_0_end_first();
  const int rank = transports::mpi::mpirun_rank();
  std::fprintf(stderr, "troupe: %s%s\n", rank == 0 ? "" : cat("rank ", rank, ": ").c_str(),
               for_terminal(why).c_str());
  return code;
}

/// Runs an action; reports its failure and returns the exit code.
int execute(const Action& action) {
  try {
    const int code = action();
    if (!std::cout.flush() || std::fflush(stdout) != 0)
      throw Failure(
          {Errc::io, "cannot write to stdout: the reader has exited or the disk is full"});
    return code;
  } catch (const Failure& failure) {
    return report(failure.what(), run::exit_code(failure.error().code));
  } catch (const std::exception& error) {
    if (const auto outside = environment_error(error))
      return report(outside->what, run::exit_code(outside->code));
    return report(cat("internal error, please report it: ", error.what()), run::exit_internal);
  }
}

/// Whether the command trains or evaluates: it writes files and talks to other processes, and a
/// closed pipe must not end it. The others end silently when their reader has gone, as in `| head`.
bool has_runs(const CLI::App& app) {
  const std::string name = app.get_subcommands().front()->get_name();
  return name == "train" || name == "launch" || name == "worker" || name == "eval" ||
         tools::megatron::trains(name);
}

/// Before any key exists.
void protect_keys(const std::string& command) {
  if (command == "launch" || command == "worker") actors::sandbox::protect_memory();
}

void add_commands(CLI::App& app, Action& action) {
  for (const auto add : {add_train,
                         add_launch,
                         add_worker,
                         add_loopback,
                         add_generate,
                         add_chat,
                         commands::add_serve,
                         add_tokenize,
                         add_render,
                         add_logprobs,
                         parity::add_parity,
                         add_merge,
                         add_score,
                         add_eval,
                         add_explain,
                         tools::migration::add_import,
                         tools::preprocess::add_preprocess,
                         tools::convert::add_convert,
                         add_info,
                         add_audit,
                         add_status,
                         add_completion,
                         add_man,
                         tools::megatron::add_programs})
    add(app, action);
}

}  // namespace

int program(int argc, char** argv) {
  actors::sandbox::run_if_helper(argc, argv);
  auto launched = commands::launched_words(argc, argv, tools::megatron::check_training);
  if (!launched) return report(launched.error().what, run::exit_code(launched.error().code));
  std::vector<std::string> words = std::move(*launched), own;
  open_standard_streams();
  if (transports::mpi::under_mpirun()) transports::mpi::die_with_mpirun();
  // A closed pipe and a file size limit (ulimit -f) become errors of the next write.
  const auto on_closed_pipe = std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  install_sigbus_handler(run::exit_code(Errc::io));
  install_bad_alloc_handler(run::exit_code(Errc::full));
  CLI::App app(
      "troupe: train, align and run language models, in one process or in a cluster of processes",
      "troupe");
  app.set_version_flag("--version", commands::version_text);
  app.require_subcommand(1);
  app.footer(
      "First steps: docs/quickstart.md. All configuration keys: troupe explain --reference. Exit "
      "codes: docs/operations.md.");
  Action action;
  add_commands(app, action);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_name() != "completion" && command->get_name() != "man")
      commands::add_logging(*command);
  if (const CLI::App* command = words.empty() ? nullptr : commands::find_command(app, words[0])) {
    own.assign(words.begin() + 1, words.end());
    words = commands::with_set(*command, own);
    words.insert(words.begin(), command->get_name());
  }
  try {
    std::reverse(words.begin(), words.end());
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return commands::report_parse_error(app, own, error);
  }
  if (!has_runs(app)) std::signal(SIGPIPE, on_closed_pipe);
  protect_keys(app.get_subcommands().front()->get_name());
  return execute(action);
}

}  // namespace troupe::launch

int main(int argc, char** argv) {
  return troupe::launch::program(argc, argv);
}
