// The program: options of the command line to one function each (launch/commands). CLI11 is fenced
// here.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>

#include "engine/base/log.h"
#include "engine/base/mapped_file_faults.h"
#include "engine/base/text.h"
#include "launch/cluster/launcher.h"
#include "launch/cluster/worker.h"
#include "launch/commands/commands.h"
#include "launch/commands/profile_options.h"
#include "launch/commands/sampling_options.h"
#include "launch/recipes/recipes.h"
#include "launch/run/exit_code.h"
#include "launch/run/train.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {

namespace {

using Action = std::function<int()>;

void add_sources(CLI::App& command, Sources& sources) {
  command.add_option("--algorithm", sources.algorithm,
                     cat("one of ", join(algorithm_names(), ", ")));
  command.add_option("--config", sources.file,
                     "YAML or JSON file with the keys of docs/configuration.md");
  command.add_option("--set", sources.sets, "key=value, as often as you like; wins over the file")
      ->take_all()
      ->allow_extra_args(false);
  add_profile(command, sources);
}

void add_train(CLI::App& app, Action& action) {
  auto sources = std::make_shared<Sources>();
  CLI::App* command = app.add_subcommand(
      "train", "Train a model: fine-tuning, preferences, rewards, reinforcement");
  add_sources(*command, *sources);
  command->footer(
      "Example:\n  troupe train --algorithm sft --set model=DIR --set data.path=rows.jsonl --set "
      "output=runs/first --set train.steps=100\n"
      "The same command again goes on where the run stopped. `troupe explain` with the same "
      "options shows what it will do.");
  command->callback([sources, &action] {
    action = [sources] {
      const Resolved run = value_or_throw(resolve(*sources));
      for (const std::string& warning : run.warnings) log_warning(warning);
      return train(run.config, run.origins);
    };
  });
}

/// The command behind `--`: only train, with its options.
Sources sources_of(std::vector<std::string> words) {
  if (words.front() != "train")
    throw CLI::ValidationError(
        "command", cat("launch starts train and nothing else; found ", quote(words.front())));
  Sources sources;
  CLI::App command("the run", "troupe launch --cluster FILE --");
  command.require_subcommand(1);
  add_sources(*command.add_subcommand("train", "the command that is launched"), sources);
  std::reverse(words.begin(), words.end());
  command.parse(words);
  return sources;
}

void add_launch(CLI::App& app, Action& action) {
  auto options = std::make_shared<LaunchOptions>();
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand(
      "launch", "Train with groups of processes: launch --cluster FILE -- train ...");
  command
      ->add_option("--cluster", options->cluster,
                   "YAML file: groups: a list of role, count and parallel (docs/operations.md)")
      ->required();
  command->add_option("command", *words, "train and its options")->required();
  command->footer(
      "Example:\n  troupe launch --cluster cluster.yaml -- train --algorithm grpo --config "
      "run.yaml\n"
      "The same command again goes on where the run stopped.");
  command->callback([options, words, &action] {
    options->sources = sources_of(*words);
    action = [options] { return launch(*options); };
  });
}

/// What launch starts; not for people.
void add_worker(CLI::App& app, Action& action) {
  app.add_subcommand("worker", "One process of a launch")->group("")->callback([&action] {
    action = worker;
  });
}

void add_model(CLI::App& command, ModelOptions& options) {
  command.add_option("--model", options.model, "Hugging Face model directory")->required();
  command.add_option("--adapter", options.adapter,
                     "directory of an adapter in PEFT's form over the model");
  command.add_option("--dtype", options.dtype, "f32 or bf16: inputs of matrix products")
      ->capture_default_str();
  command
      .add_option("--threads", options.threads,
                  "0: as many as the process may use; never changes a result")
      ->check(CLI::Range(0, 1024));
}

void add_generate(CLI::App& app, Action& action) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand(
      "generate", "Continue prompts: JSON lines in and out, or --prompt TEXT for a person");
  add_model(*command, options->model);
  add_sampling(*command, *options);
  const auto returned = [options](std::int64_t count) {
    options->settings.set("num_return_sequences", count);
  };
  command
      ->add_option_function<std::int64_t>("--n", returned,
                                          "samples a prompt, or sequences of a beam search; above "
                                          "1 the answer is {\"samples\": [...]}")
      ->check(CLI::Range(1, 1 << 16));
  CLI::Option* prompt = command->add_option("--prompt", options->prompt,
                                            "a prompt; its continuation is printed as it comes");
  command->footer(
      "Lines: {\"prompt\": TEXT} or {\"ids\": [...]} to {\"ids\", \"text\", \"logprobs\", "
      "\"finish_reason\"}. Settings come from the "
      "model's\n"
      "generation_config.json (greedy where there is none), the options, and the line itself, each "
      "over the one before; docs/formats.md\n"
      "lists all that a file or a line may carry.");
  command->callback([options, prompt, &action] {
    options->has_prompt = prompt->count() > 0;
    action = [options] { return generate(*options); };
  });
}

void add_chat(CLI::App& app, Action& action) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command =
      app.add_subcommand("chat", "Talk to a model that has a chat template; an empty line ends");
  add_model(*command, options->model);
  add_sampling(*command, *options);
  command->add_option("--system", options->system, "the system message");
  command->callback([options, &action] { action = [options] { return chat(*options); }; });
}

void add_score(CLI::App& app, Action& action) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* command = app.add_subcommand(
      "score", "How well an outcome reward model orders pairs of answers, and how sure it is");
  add_model(*command, options->model);
  command
      ->add_option("--data", options->data,
                   "files of pairs, in the forms that --algorithm orm reads")
      ->required();
  command->add_option("--max-length", options->max_length,
                      "leave out pairs with a longer sequence; 0: than the model's");
  command->add_option("--bins", options->bins, "of the confidence sigmoid(|margin|), from 0.5 to 1")
      ->check(CLI::Range(1, 1000));
  command->footer(
      "One line: {\"pairs\", \"accuracy\", \"margin\", \"mean\", \"std\" (of the scores), "
      "\"calibration_error\", \"bins\"}. The "
      "calibration error "
      "is\nthe sum over bins of (pairs in it / all pairs) |accuracy - mean confidence|.");
  command->callback([options, &action] { action = [options] { return score(*options); }; });
}

void add_tokenize(CLI::App& app, Action& action) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand(
      "tokenize", "Text to token ids: {\"text\"} to {\"ids\"}, or back with --decode");
  command->add_option("--model", options->model, "folder with tokenizer.json, or the file itself")
      ->required();
  command->add_flag("--special", options->special,
                    "add what the post-processor adds, such as a start token");
  command->add_flag("--decode", options->decode,
                    "{\"ids\"} to {\"text\"}, special tokens left out");
  command->callback([options, &action] { action = [options] { return tokenize(*options); }; });
}

void add_render(CLI::App& app, Action& action) {
  auto options = std::make_shared<RenderOptions>();
  CLI::App* command = app.add_subcommand("render",
                                         "Messages to the text that a model is trained on: "
                                         "{\"messages\"} to {\"text\", \"assistant_spans\"}");
  CLI::Option* model =
      command->add_option("--model", options->model, "folder with a chat template");
  CLI::Option* file =
      command->add_option("--template", options->template_file, "the template itself")
          ->excludes(model);
  command
      ->add_option("--prompt-type", options->prompt_type,
                   "one of MindSpeed's; with --model it is given that folder's special tokens")
      ->excludes(file);
  command->footer(
      "Lines: {\"messages\", \"tools\"?, \"documents\"?, \"add_generation_prompt\"?, "
      "\"bos_token\"?, \"eos_token\"?, \"kwargs\"?, "
      "\"now\"?}.");
  command->callback([options, &action] {
    if (options->model.empty() && options->template_file.empty() && options->prompt_type.empty())
      throw CLI::RequiredError("--model, --template or --prompt-type");
    action = [options] { return render(*options); };
  });
}

void add_logprobs(CLI::App& app, Action& action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app.add_subcommand(
      "logprobs", "Log-probabilities: {\"ids\"} or {\"text\"} to {\"logprobs\", \"nll\"}");
  add_model(*command, *options);
  command->footer(
      "logprobs: one a token, the first is null. nll: their negated sum, in nats. Text gets the "
      "tokenizer's special tokens.");
  command->callback([options, &action] { action = [options] { return logprobs(*options); }; });
}

void add_explain(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "What a run would do: values and their origins, loss, parameters, memory");
  add_sources(*command, options->sources);
  command->add_flag("--reference", options->reference,
                    "print the page of all configuration keys instead");
  command->callback([options, &action] { action = [options] { return explain(*options); }; });
}

void add_merge(CLI::App& app, Action& action) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand(
      "merge", "Add an adapter (LoRA, DoRA) into its model's weights: an ordinary model folder");
  command
      ->add_option("--model", options->model,
                   "Hugging Face model directory that the adapter belongs to")
      ->required();
  command
      ->add_option("--adapter", options->adapter,
                   "directory with adapter_config.json, such as a run's checkpoint")
      ->required();
  command->add_option("--output", options->output, "new directory for the merged model")
      ->required();
  command->add_option("--dtype", options->dtype, "f32, bf16 or f16: what the weights are stored in")
      ->capture_default_str();
  command->callback([options, &action] { action = [options] { return merge(*options); }; });
}

void add_info(CLI::App& app, Action& action) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info",
                                         "What a file or folder is (model, tokenizer, data, run, "
                                         "checkpoint), and whether it can be used");
  command->add_option("path", options->path, "file or folder")->required();
  command
      ->add_option("--column-names", options->column_names,
                   "a,b,...: columns of csv and tsv files without a header (data.column_names)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "one JSON object, for machines");
  command->callback([options, &action] { action = [options] { return info(*options); }; });
}

/// The exit code of an action, its failure told on stderr.
int run(const Action& action) {
  try {
    const int code = action();
    if (!std::cout.flush() || std::fflush(stdout) != 0)
      throw Failure(
          {Errc::io, "the output cannot be written; its reader is gone or the disk is full"});
    return code;
  } catch (const Failure& failure) {
    // What one rank of a group refuses, all refuse: once is enough.
    if (transports::mpi::mpirun_rank() == 0) std::fprintf(stderr, "troupe: %s\n", failure.what());
    return exit_code(failure.error().code);
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "troupe: %s: %s\n", error.path1().c_str(), error.code().message().c_str());
    return exit_code(Errc::io);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "troupe: out of memory; `troupe explain` shows what the run needs\n");
    return exit_code(Errc::full);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "troupe: a mistake in troupe itself, please report it: %s\n",
                 error.what());
    return exit_internal;
  }
}

/// Of a command that does not exist, the parser would only say that a command is required.
int refuse(const CLI::App& app, const CLI::ParseError& error) {
  const auto words = app.remaining();
  if (error.get_name() != "RequiredError" || !app.get_subcommands().empty() || words.empty())
    return app.exit(error) == 0 ? 0 : exit_usage;
  std::vector<std::string> known;
  for (const auto* command : app.get_subcommands([](const CLI::App* each) {
         return !each->get_name().empty() && !each->get_group().empty();
       }))
    known.push_back(command->get_name());
  const std::string meant = nearest(words.front(), known);
  std::fprintf(stderr, "troupe: there is no command %s; there are %s%s\n",
               quote(words.front()).c_str(), join(known, ", ").c_str(),
               meant.empty() ? "" : cat("; did you mean ", meant, "?").c_str());
  return exit_usage;
}

}  // namespace

int program(int argc, char** argv) {
  if (transports::mpi::under_mpirun()) transports::mpi::die_with_mpirun();
  std::signal(SIGPIPE,
              SIG_IGN);  // a reader that is gone is an error of the next write, not a death
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow further (ulimit -f)
  install_sigbus_handler(exit_code(Errc::io));
  CLI::App app(
      "troupe: actors that train, align and run language models, from one process on a laptop "
      "upwards",
      "troupe");
  app.set_version_flag("--version", "troupe " TROUPE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "First steps: docs/quickstart.md. All configuration keys: troupe explain --reference. Exit "
      "codes: docs/operations.md.");
  Action action;
  for (const auto add : {add_train, add_launch, add_worker, add_generate, add_chat, add_tokenize,
                         add_render, add_logprobs, add_merge, add_score, add_explain, add_info})
    add(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return refuse(app, error);
  }
  return run(action);
}

}  // namespace troupe::launch

int main(int argc, char** argv) {
  return troupe::launch::program(argc, argv);
}
