#include "launch/commands/eval_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>

#include "engine/base/text/text.h"
#include "launch/commands/arguments.h"
#include "launch/commands/eval.h"
#include "launch/commands/options.h"

namespace troupe::launch::commands {
namespace {

// An option that sets a key of the run.
CLI::Option* add_key(CLI::App& command, EvalOptions& o, const char* option, const char* key,
                     const char* help) {
  return command.add_option_function<std::string>(
      option, [key, &o](const std::string& given) { o.sets.push_back(cat(key, "=", given)); },
      help);
}

void add_eval_sampling(CLI::App& command, EvalOptions& o) {
  const auto value = [&](auto... words) { add_key(command, o, words...); };
  value("--n", "eval.samples",
        "completions per item; above 1, pass@1, pass@2, pass@4, ... are printed instead of the "
        "accuracy");
  value("--temperature", "eval.temperature",
        "sampling temperature; 0: greedy; by default greedy for one completion per item, otherwise "
        "1");
  value("--max-new-tokens,--max-tokens", "rollout.max_new_tokens",
        "maximum number of new tokens; by default 256");
  value("--top-k", "rollout.top_k", "sample from the k most likely tokens; 0: all");
  value("--top-p", "rollout.top_p",
        "sample from the most likely tokens up to this total probability");
  value("--min-p", "rollout.min_p",
        "sample from tokens with at least this fraction of the highest probability");
  value("--stop", "rollout.stop", "stop string, or a list of them: '[END, Question:]'");
  value("--seed", "train.seed", "random seed for sampling");
  value("--weights", "rollout.weights", "full, or int8: sample from weights of 8 bits");
}

// --task and its options.
void add_suite(CLI::App& command, SuiteOptions& o) {
  command
      .add_option("--task", o.tasks,
                  "public tasks instead of --data and --reward: names of tasks, groups and tags, "
                  "separated by commas (evaluation.md)")
      ->delimiter(',');
  command.add_option("--suite", o.suite, "the tool whose prompts and scores the tasks have")
      ->check(CLI::IsMember({"lm-eval", "mindspeed"}))
      ->capture_default_str();
  path_option(command.add_option("--task-data", o.task_data, "folder with the tasks' data"));
  path_option(command.add_option("--fewshot-data", o.fewshot_data,
                                 "folder with the data of examples; by default --task-data"));
  path_option(command.add_option("--include-path", o.include_paths, "folder of own task files"));
  command
      .add_option("--num-fewshot", o.num_fewshot,
                  "examples before each item; by default the task's number")
      ->check(CLI::Range(0, 1000));
  command.add_option("--fewshot-seed", o.fewshot_seed, "seed of the choice of examples")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 62))
      ->capture_default_str();
  command
      .add_option("--limit", o.limit,
                  "number of items of each task; below 1 the part of them; 0: all")
      ->check(CLI::NonNegativeNumber);
  path_option(command.add_option("--samples", o.samples,
                                 "file {\"task\": [numbers of items]}: evaluates these only"));
  command.add_option("--system-instruction", o.system_instruction,
                     "text before the description of each task");
  command.add_flag(
      "--apply-chat-template", o.apply_chat_template,
      "prompts as messages of the model's chat template (--chat-template: of another)");
  command.add_flag("--fewshot-as-multiturn", o.fewshot_as_multiturn,
                   "with --apply-chat-template: examples as turns of a dialogue");
  command.add_flag("--log-samples", o.log_samples,
                   "write samples_TASK_*.jsonl with prompts, answers and scores of each item");
  command.add_option("--print-prompt", o.print_prompt,
                     "print the first items of each task as JSON lines, and evaluate nothing");
  command.add_flag("--allow-code", o.allow_code,
                   "run programs that the model writes, in the sandbox of reward programs");
}

// An option whose values are the names of an enumeration.
template <class Choice>
void add_choice(CLI::App& command, const char* option, Choice& out, const char* help) {
  const auto names = names_of(Choice());
  command
      .add_option_function<std::string>(
          option,
          [names, &out](const std::string& given) {
            out = static_cast<Choice>(std::ranges::find(names, given) - names.begin());
          },
          help)
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())));
}

// Of the suite mindspeed.
void add_mindspeed(CLI::App& command, SuiteOptions& o) {
  namespace mindspeed = evaluation::mindspeed;
  add_choice(command, "--mode", o.mode,
             "of the suite mindspeed: direct, chat (--prompt-type), alternative "
             "(--alternative-prompt) or cot (--chain-of-thought)");
  add_choice(command, "--eval-language", o.language, "of the suite mindspeed: of its dialogues");
  command.add_flag("--no-chat-template", o.no_chat_template,
                   "of the suite mindspeed: prompts without the model's chat template");
  command.add_flag("--fixed", o.fixed,
                   "of the suite mindspeed: corrects the defects of MindSpeed-LLM (evaluation.md)");
  command.add_flag("--lenient", o.lenient,
                   "of the suite mindspeed: mmlu in mode alternative without --origin-postprocess");
  command.add_flag_callback(
      "--no-pandas-cells", [&o] { o.pandas_cells = false; },
      "of the suite mindspeed: cells of csv files as they are written");
}

// Options of lm-evaluation-harness that do not exist yet: refused by name.
void refuse_missing(CLI::App& command) {
  const auto refuse = [](const std::string& name) {
    throw ArgumentProblem(cat(name, " does not exist yet (docs/evaluation.md names what does)"));
  };
  for (const std::string name : {"--url", "--api-key-file"})
    command
        .add_option_function<std::string>(
            name, [=](const std::string&) { refuse(name); }, "does not exist yet")
        ->group("");
}

void add_evaluation(CLI::App& command, EvalOptions& o) {
  command.get_option("--model")->required(false);
  command.add_option("--data", o.data, "files of prompts with answers, in any format of training");
  add_key(command, o, "--reward", "reward",
          "reward rules as in a run file: exact_match, or '[{rule: boxed}, {rule: length, max: "
          "200, weight: 0.1}]'");
  command.add_option("--output", o.output,
                     "write one JSON line per item to this file; with --task a folder, for "
                     "results_*.json; the same command continues it");
  command
      .add_option("--compare", o.compared,
                  "two folders of results with samples: differences item by item, with intervals")
      ->expected(2);
  add_suite(command, o.suite);
  add_mindspeed(command, o.suite);
  refuse_missing(command);
  add_eval_sampling(command, o);
  add_key(command, o, "--pass-reward", "eval.pass_reward",
          "a completion passes with at least this reward; by default 1");
  add_key(command, o, "--chat-template", "chat_template",
          "chat template file instead of the model's own");
  const auto set = [&o](const std::vector<std::string>& given) {
    o.sets.insert(o.sets.end(), given.begin(), given.end());
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--set", set,
          "KEY=VALUE: another setting of a run, such as data.columns or train.max_length; may be "
          "given several times")
      ->allow_extra_args(false);
  command.add_flag("--json", o.json, "print one JSON object");
}

}  // namespace

void add_eval(CLI::App& app, std::function<int()>& action) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand(
      "eval", "Evaluate a model on prompts with reward rules, or on public tasks");
  add_model(*command, options->model);
  add_evaluation(*command, *options);
  command->footer(
      "Example:\n  troupe eval --model runs/first/latest --data test.jsonl --reward exact_match "
      "--output answers.jsonl\n  troupe eval --model DIR --task mmlu,gsm8k --task-data DATA "
      "--output results\nPrints each value with its confidence interval of 95 % "
      "(docs/evaluation.md). Run the same command again to\ncontinue an interrupted evaluation.");
  command->callback([options, &action] { action = [options] { return eval(*options); }; });
}

}  // namespace troupe::launch::commands
