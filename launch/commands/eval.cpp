#include "launch/commands/eval.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "engine/adapter/model_folders.h"
#include "engine/base/log/log.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/commands/eval/compare.h"
#include "launch/commands/eval/items.h"
#include "launch/commands/eval/model_files.h"
#include "launch/commands/eval/output_file.h"
#include "launch/commands/eval/summary.h"
#include "launch/config/schema.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::commands {
namespace {

// The configuration of a GRPO run with these prompts: its prompts are encoded, its completions
// sampled and its rewards computed as in training. Only the settings below are read.
config::RunConfig eval_config(const EvalOptions& options) {
  recipes::Sources sources{.algorithm = "grpo", .file = "", .sets = {}};
  sources.sets = {
      cat("model=",
          value_or_throw(engine::adapter::model_folders(options.model.model, options.model.adapter))
              .model),
      cat("data.path=", options.data.size() == 1 ? options.data.front()
                                                 : cat('[', join(options.data, ", "), ']')),
      cat("train.dtype=", name_of(options.model.dtype)),
      "output=-"};  // a run needs one; it is not used
  sources.sets.insert(sources.sets.end(), options.sets.begin(), options.sets.end());
  return value_or_throw(recipes::resolve(sources)).config;
}

// True for the settings that determine the lines of the output file.
bool determines_lines(std::string_view key) {
  if (key == "rollout.max_sequences" || key == "rollout.cache_tokens" || key == "rollout.lookup" ||
      key == "data.path")
    return false;
  constexpr std::string_view keys[] = {"chat_template",    "model_overrides", "train.max_length",
                                       "train.dtype",      "train.seed",      "eval.samples",
                                       "eval.temperature", "tokenizer_ids",   "reward"};
  return std::ranges::find(keys, key) != std::end(keys) || key.starts_with("rollout.") ||
         key.starts_with("data.");
}

Json settings_of(const config::RunConfig& config, const EvalItems& items) {
  Json settings, data = Json::Array{};
  for (const config::Field& field : config::fields())
    if (determines_lines(field.key)) settings.set(field.key, config::value_text(field, config));
  for (const auto& file : items.files()) data.array().emplace_back(file.xxh3);
  return Json::Object{{"model", checksums(items.folders().model)},
                      {"adapter", checksums(items.folders().adapter)},
                      {"data", std::move(data)},
                      {"settings", std::move(settings)}};
}

// On a terminal a line that is rewritten; in a log a line every half minute.
class EvalProgress {
 public:
  void show(std::size_t done, std::size_t items) {
    if (::isatty(STDERR_FILENO) == 1) {
      std::cerr << "\revaluated " << done << " of " << items << (done == items ? "\n" : "")
                << std::flush;
      return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (done == items || now - shown_ < std::chrono::seconds(30)) return;
    log_info(cat("evaluated ", done, " of ", items));
    shown_ = now;
  }

 private:
  std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
};

std::vector<Json> evaluate_all(EvalItems& items, std::optional<EvalFile>& file) {
  std::vector<Json> lines;
  if (file) lines = file->lines();
  if (!lines.empty()) log_info(cat("resuming at item ", lines.size(), " of ", items.size()));
  EvalProgress progress;
  items.evaluate(lines.size(), [&](std::vector<Json> more) {
    for (Json& line : more) {
      if (file) value_or_throw(file->append(line));
      lines.push_back(std::move(line));
    }
    progress.show(lines.size(), items.size());
  });
  return lines;
}

void report_failures(const EvalSummary& summary) {
  if (summary.failed == 0) return;
  const std::string what = cat(summary.failed, " of ", summary.items * summary.samples,
                               " completions have no reward (first: ", summary.failure, ")");
  if (summary.failed == summary.items * summary.samples) throw Failure({Errc::bad_input, what});
  log_warning(cat(what, "; they do not pass"));
}

constexpr std::string_view template_key = "chat_template=", length_key = "rollout.max_new_tokens=";

/// Settings of a run that are options of tasks, too.
bool is_of_suites(const std::string& set) {
  return set.starts_with(template_key) || set.starts_with(length_key);
}

void take_setting(const std::string& set, SuiteOptions& suite) {
  if (set.starts_with(template_key)) suite.chat_template = set.substr(template_key.size());
  if (!set.starts_with(length_key)) return;
  const auto length = parse_number<std::int64_t>(set.substr(length_key.size()));
  if (!length || *length < 1 || *length > 1 << 20)
    throw Failure({Errc::usage, cat("--max-new-tokens: expected a whole number, at least 1, found ",
                                    set.substr(length_key.size()))});
  suite.max_new_tokens = *length;
}

/// Whether the options ask for one thing only. Throws Failure.
void check_request(const EvalOptions& options, bool rules) {
  const auto wrong = [](const std::string& what) { throw Failure({Errc::usage, what}); };
  const bool tasks = !options.suite.tasks.empty();
  if (!options.compared.empty()) {
    if (tasks || rules) wrong("--compare takes no --task, --data or --reward");
    return;
  }
  if (options.model.model.empty()) wrong("eval: --model is required");
  if (tasks && rules)
    wrong(
        "--task brings its own data and scores; leave out --data, --reward and settings of a run");
  if (tasks) return;
  const bool reward = std::ranges::any_of(
      options.sets, [](const std::string& set) { return set.starts_with("reward="); });
  if (options.data.empty() || !reward)
    wrong(cat("eval: ", options.data.empty() ? "--data" : "--reward",
              " is required, or --task for public tasks"));
}

}  // namespace

int eval(const EvalOptions& options) {
  const bool tasks = !options.suite.tasks.empty();
  const auto of_run = [&](const std::string& set) { return !tasks || !is_of_suites(set); };
  check_request(options, !options.data.empty() || std::ranges::any_of(options.sets, of_run));
  if (!options.compared.empty())
    return compare_evaluations(options.compared[0], options.compared[1], options.json);
  if (!options.suite.tasks.empty()) {
    SuiteOptions suite = options.suite;
    for (const std::string& set : options.sets) take_setting(set, suite);
    suite.output = options.output;
    suite.json = options.json;
    return eval_suite(suite, options.model);
  }
  const config::RunConfig config = eval_config(options);
  model::ModelOptions model = options.model;
  model.overrides = config.model_overrides;
  EvalItems items(config, model);
  std::optional<EvalFile> file;
  if (!options.output.empty())
    file.emplace(
        value_or_throw(EvalFile::open(options.output, settings_of(config, items), items.size())));
  const auto lines = evaluate_all(items, file);
  const auto summary = value_or_throw(summarize(lines, config.eval.pass_reward));
  report_failures(summary);
  std::cout << (options.json ? summary_json(summary).dump() + "\n" : summary_text(summary));
  return 0;
}

}  // namespace troupe::launch::commands
