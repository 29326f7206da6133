#include "launch/commands/eval/suite.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <set>

#include "engine/base/files/file.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/commands/eval/code_check.h"
#include "launch/commands/eval/model_files.h"
#include "launch/commands/eval/output_file.h"
#include "launch/commands/eval/suite_model.h"
#include "launch/evaluation/bbh_examples.h"
#include "launch/evaluation/report.h"
#include "launch/evaluation/task_data.h"
#include "launch/terminal/progress_line.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::commands {
namespace {

namespace fs = std::filesystem;
using evaluation::TaskConfig;
using evaluation::TaskRun;

/// A task with its rows; `run.items` are those that are evaluated.
struct LoadedTask {
  evaluation::TaskRows rows;
  TaskRun run;
};

Result<Json> chosen_samples(const SuiteOptions& options) {
  if (options.samples.empty()) return Json();
  auto chosen = read_json(options.samples);
  RETURN_IF_ERROR(chosen);
  if (!chosen->is_object())
    return fail(Errc::usage, cat(options.samples, ": expected {\"task\": [numbers of items]}"));
  return chosen;
}

/// The numbers of the items that are evaluated, in their order.
Result<std::vector<std::int64_t>> item_numbers(const TaskConfig& task, std::int64_t count,
                                               const SuiteOptions& options, const Json& chosen) {
  std::set<std::int64_t> out;
  if (const Json* list = chosen.find(task.name); list != nullptr && list->is_array()) {
    for (const Json& each : list->array()) {
      if (!each.is_integer() || each.integer() < 0 || each.integer() >= count)
        return fail(Errc::usage, cat(options.samples, ": ", task.name,
                                     ": expected numbers from 0 "
                                     "to ",
                                     count - 1, ", found ", each.dump()));
      out.insert(each.integer());
    }
  } else if (chosen.is_null()) {
    std::int64_t wanted = count;
    if (options.limit > 0)
      wanted =
          options.limit < 1
              ? static_cast<std::int64_t>(std::ceil(static_cast<double>(count) * options.limit))
              : static_cast<std::int64_t>(options.limit);
    for (std::int64_t n = 0; n < std::min(wanted, count); ++n) out.insert(n);
  }
  return std::vector(out.begin(), out.end());
}

Result<LoadedTask> load_task(const TaskConfig& task, const SuiteOptions& options,
                             const Json& chosen) {
  if (task.runs_code && !options.allow_code && options.print_prompt == 0)
    return fail(Errc::usage, cat(task.name,
                                 " runs programs that the model writes; give "
                                 "--allow-code to run them in the sandbox (docs/evaluation.md)"));
  const bool examples =
      options.num_fewshot.value_or(task.num_fewshot.value_or(0)) > 0 && task.num_fewshot != 0;
  LoadedTask out;
  auto rows = evaluation::load_rows(task, {options.task_data, options.fewshot_data}, examples);
  RETURN_IF_ERROR(rows);
  out.rows = std::move(*rows);
  auto prompts = evaluation::TaskPrompts::create(
      task, out.rows,
      {options.num_fewshot, static_cast<std::uint64_t>(options.fewshot_seed),
       options.system_instruction});
  RETURN_IF_ERROR(prompts);
  auto numbers = item_numbers(task, std::ssize(out.rows.items), options, chosen);
  RETURN_IF_ERROR(numbers);
  out.run.task = &task;
  out.run.num_fewshot = prompts->num_fewshot();
  if (options.print_prompt > 0 && std::ssize(*numbers) > options.print_prompt)
    numbers->resize(static_cast<std::size_t>(options.print_prompt));
  for (const std::int64_t number : *numbers) {
    auto item = prompts->item(number);
    RETURN_IF_ERROR(item);
    out.run.items.push_back(std::move(*item));
  }
  return out;
}

void print_prompts(const std::vector<LoadedTask>& tasks) {
  for (const LoadedTask& task : tasks)
    for (const auto& item : task.run.items) {
      Json::Array continuations;
      for (const std::string& each : item.continuations) continuations.emplace_back(each);
      Json line = Json::Object{{"task", task.run.task->name},
                               {"doc_id", item.number},
                               {"sha256", evaluation::text_hash(item.context)},
                               {"context", item.context},
                               {"continuations", std::move(continuations)},
                               {"target", item.target}};
      if (task.run.task->output_type == evaluation::OutputType::generate_until)
        line.set("generation_kwargs", task.run.task->generation);
      std::cout << line.dump() << "\n";
    }
}

Json line_of(std::size_t id, const AskedItem& asked, const AnsweredItem& answered) {
  Json::Array likelihoods, texts;
  for (const auto& each : answered.answer.likelihoods)
    likelihoods.push_back(Json::Array{each.logp, each.greedy});
  for (const std::string& each : answered.answer.texts) texts.emplace_back(each);
  return Json::Object{
      {"id", static_cast<std::int64_t>(id)}, {"task", asked.task->name},
      {"doc_id", asked.item->number},        {"likelihoods", std::move(likelihoods)},
      {"texts", std::move(texts)},           {"truncated", answered.truncated}};
}

Result<AnsweredItem> answer_in(const Json& line, const AskedItem& asked) {
  AnsweredItem out;
  const Json *likelihoods = line.find("likelihoods"), *texts = line.find("texts"),
             *truncated = line.find("truncated"), *task = line.find("task");
  const bool known = likelihoods && texts && truncated && task && likelihoods->is_array() &&
                     texts->is_array() && *task == Json(asked.task->name);
  if (!known)
    return fail(Errc::corrupt, "items.jsonl: a line of another form; remove it to start over");
  for (const Json& each : likelihoods->array())
    out.answer.likelihoods.push_back({each.array()[0].number(), each.array()[1].boolean()});
  for (const Json& each : texts->array()) out.answer.texts.push_back(each.string());
  out.truncated = truncated->boolean();
  return out;
}

/// "evaluated 12 of 40, ETA 1:05": a line that is rewritten, or one every half minute.
class Progress {
 public:
  explicit Progress(std::size_t done, std::size_t items) : first_(done), items_(items) {}
  void show(std::size_t done) {
    const double now = terminal::steady_seconds();
    const bool terminal = ::isatty(STDERR_FILENO) == 1, last = done == items_;
    if (!last && now - shown_ < (terminal ? 0.1 : 30.0)) return;
    shown_ = now;
    const std::string text =
        cat("evaluated ", done, " of ", items_, ", ",
            terminal::eta_text(now - began_, static_cast<double>(done - first_),
                               static_cast<double>(items_ - first_)));
    if (!terminal) return log_info(text);
    std::cerr << '\r' << text << "    " << (last ? "\n" : "") << std::flush;
  }

 private:
  std::size_t first_, items_;
  double began_ = terminal::steady_seconds(), shown_ = began_;
};

/// What the answers depend on.
Json settings_of(const SuiteOptions& options, const evaluation::TaskSelection& selection,
                 const std::vector<AskedItem>& items, const engine::adapter::ModelFolders& folders,
                 const model::ModelOptions& model) {
  std::string asked;
  for (const AskedItem& each : items) {
    asked += each.item->context;
    for (const std::string& text : each.item->continuations) asked += text;
  }
  Json::Array tasks;
  for (const TaskConfig& task : selection.tasks) tasks.emplace_back(task.name);
  return Json::Object{{"model", checksums(folders.model)},
                      {"adapter", checksums(folders.adapter)},
                      {"dtype", name_of(model.dtype)},
                      {"suite", options.suite},
                      {"tasks", std::move(tasks)},
                      {"items", static_cast<std::int64_t>(items.size())},
                      {"prompts", evaluation::text_hash(asked)}};
}

Result<> check_output(const std::string& output) {
  if (output.empty()) return {};
  std::error_code failed;
  if (fs::exists(output, failed) && !fs::is_directory(output, failed))
    return fail(Errc::usage, cat(output, " is a file; with --task, --output names a folder"));
  fs::create_directories(output, failed);
  if (failed) return fail(Errc::io, cat(output, ": ", failed.message()));
  return {};
}

/// Answers of all items, those of an interrupted evaluation first.
void answer_all(const SuiteOptions& options, const evaluation::TaskSelection& selection,
                const model::ModelOptions& model_options, std::vector<LoadedTask>& tasks) {
  std::vector<AskedItem> items;
  std::vector<TaskRun*> runs;
  for (LoadedTask& task : tasks)
    for (const auto& item : task.run.items) {
      items.push_back({task.run.task, &item});
      runs.push_back(&task.run);
    }
  SuiteModel model(model_options);
  std::optional<EvalFile> file;
  std::size_t done = 0;
  const auto keep = [&](AnsweredItem answered) {
    runs[done]->truncated += answered.truncated ? 1 : 0;
    runs[done]->answers.push_back(std::move(answered.answer));
    ++done;
  };
  if (!options.output.empty()) {
    file.emplace(value_or_throw(EvalFile::open(
        options.output + "/items.jsonl",
        settings_of(options, selection, items, model.folders(), model_options), items.size())));
    for (const Json& line : file->lines()) keep(value_or_throw(answer_in(line, items[done])));
    if (done > 0) log_info(cat("resuming at item ", done, " of ", items.size()));
  }
  Progress progress(done, items.size());
  model.answer({items.begin() + static_cast<std::ptrdiff_t>(done), items.end()},
               [&](AnsweredItem answered) {
                 if (file) value_or_throw(file->append(line_of(done, items[done], answered)));
                 keep(std::move(answered));
                 progress.show(done);
               });
  const auto counters = model.counters();
  log_info(cat("computed ", counters.step_tokens.sum, " tokens; the cache had ",
               counters.prefix_hits, " of the ", counters.prefix_queries, " of all prompts"));
}

std::string date_text() {
  char out[64];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return {out, std::strftime(out, sizeof out, "%Y-%m-%dT%H-%M-%S", &parts)};
}

void write_results(const SuiteOptions& options, const Json& results,
                   const std::vector<evaluation::TaskResult>& tasks) {
  if (options.output.empty()) return;
  const std::string date = date_text();
  value_or_throw(
      write_file_durably(cat(options.output, "/results_", date, ".json"), results.dump(2) + "\n"));
  if (!options.log_samples) return;
  for (const auto& task : tasks) {
    std::string text;
    for (const Json& line : task.samples) text += line.dump() + "\n";
    value_or_throw(
        write_file_durably(cat(options.output, "/samples_", task.name, '_', date, ".jsonl"), text));
  }
}

Json config_of(const SuiteOptions& options, const model::ModelOptions& model) {
  return Json::Object{
      {"model", "troupe"},
      {"model_args", cat("pretrained=", model.model)},
      {"dtype", name_of(model.dtype)},
      {"suite", options.suite},
      {"limit", options.limit > 0 ? Json(options.limit) : Json()},
      {"num_fewshot", options.num_fewshot ? Json(*options.num_fewshot) : Json()},
      {"fewshot_seed", options.fewshot_seed},
      {"system_instruction",
       options.system_instruction.empty() ? Json() : Json(options.system_instruction)},
      {"bootstrap_iters", 100000}};
}

}  // namespace

int eval_suite(const SuiteOptions& options, const model::ModelOptions& model) {
  if (options.suite != "lm-eval")
    throw Failure({Errc::unsupported,
                   cat("--suite ", options.suite, ": only the suite lm-eval exists so far")});
  if (transports::mpi::under_mpirun())
    throw Failure({Errc::unsupported,
                   "eval --task: ranks of mpirun do not share the items of a task; run one process "
                   "(--threads N), or `troupe serve` under mpirun with lm-evaluation-harness"});
  value_or_throw(check_output(options.output));
  const auto library = value_or_throw(evaluation::TaskLibrary::load(options.include_paths));
  auto selection = value_or_throw(library.select(options.tasks));
  const Json chosen = value_or_throw(chosen_samples(options));
  const std::string& examples =
      options.fewshot_data.empty() ? options.task_data : options.fewshot_data;
  std::vector<LoadedTask> tasks;
  tasks.reserve(selection.tasks.size());  // items keep their places
  for (TaskConfig& task : selection.tasks) {
    value_or_throw(evaluation::add_bbh_prompt(task, examples));
    tasks.push_back(value_or_throw(load_task(task, options, chosen)));
    tasks.back().run.rows = &tasks.back().rows;
  }
  if (options.print_prompt > 0) {
    print_prompts(tasks);
    return 0;
  }
  answer_all(options, selection, model, tasks);
  const evaluation::CodeCheck check = sandboxed_code_check();
  std::vector<evaluation::TaskResult> results;
  for (const LoadedTask& task : tasks) {
    if (task.run.items.empty()) continue;
    results.push_back(evaluation::score_task(task.run, check));
  }
  if (results.empty()) throw Failure({Errc::usage, "no item is evaluated; see --samples"});
  Json out = evaluation::results_json(selection, results, config_of(options, model));
  out.set("model_name", model.model).set("date", static_cast<std::int64_t>(std::time(nullptr)));
  write_results(options, out, results);
  std::cout << (options.json ? out.dump(2) + "\n" : evaluation::results_table(selection, results));
  return 0;
}

}  // namespace troupe::launch::commands
