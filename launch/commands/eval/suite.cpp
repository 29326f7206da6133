#include "launch/commands/eval/suite.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <map>

#include "engine/base/files/file.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/commands/eval/code_check.h"
#include "launch/commands/eval/loaded_tasks.h"
#include "launch/commands/eval/model_files.h"
#include "launch/commands/eval/output_file.h"
#include "launch/commands/eval/suite_model.h"
#include "launch/evaluation/report.h"
#include "launch/terminal/progress_line.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::commands {
namespace {

namespace fs = std::filesystem;
using evaluation::TaskConfig;
using evaluation::TaskRun;

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
Json settings_of(const SuiteOptions& options, const LoadedSuite& suite,
                 const std::vector<AskedItem>& items, const engine::adapter::ModelFolders& folders,
                 const model::ModelOptions& model) {
  std::string asked;
  for (const AskedItem& each : items) {
    asked += each.item->context;
    for (const std::string& text : each.item->continuations) asked += text;
  }
  Json::Array tasks;
  for (const TaskConfig& task : suite.selection.tasks) tasks.emplace_back(task.name);
  Json out = Json::Object{{"model", checksums(folders.model)},
                          {"adapter", checksums(folders.adapter)},
                          {"dtype", name_of(model.dtype)},
                          {"suite", options.suite},
                          {"tasks", std::move(tasks)},
                          {"items", static_cast<std::int64_t>(items.size())},
                          {"prompts", evaluation::text_hash(asked)}};
  if (const Json* length = suite.facts.find("max_new_tokens")) out.set("max_new_tokens", *length);
  return out;
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

/// The ids that BoolQ compares, which are no words with every tokenizer.
void add_answer_tokens(const SuiteModel& model, LoadedSuite& suite) {
  for (const TaskConfig& task : suite.selection.tasks) {
    if (task.scored != evaluation::Scored::last_token) continue;
    const std::int64_t yes = model.last_token("Yes"), no = model.last_token("No");
    suite.facts.set("answer_tokens", Json::Object{{"Yes", yes}, {"No", no}});
    log_info(cat("boolq compares the tokens ", yes, " (Yes) and ", no, " (No)"));
    return;
  }
}

/// Answers of all items, those of an interrupted evaluation first.
void answer_all(const SuiteOptions& options, const model::ModelOptions& model_options,
                LoadedSuite& suite) {
  std::vector<AskedItem> items;
  std::vector<TaskRun*> runs;
  for (LoadedTask& task : suite.tasks)
    for (const auto& item : task.run.items) {
      items.push_back({task.run.task, &item});
      runs.push_back(&task.run);
    }
  SuiteModel model(model_options);
  add_answer_tokens(model, suite);
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
        settings_of(options, suite, items, model.folders(), model_options), items.size())));
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

Json config_of(const SuiteOptions& options, const model::ModelOptions& model,
               const LoadedSuite& suite) {
  Json out =
      Json::Object{{"model", "troupe"},
                   {"model_args", cat("pretrained=", model.model)},
                   {"dtype", name_of(model.dtype)},
                   {"suite", options.suite},
                   {"limit", options.limit > 0 ? Json(options.limit) : Json()},
                   {"num_fewshot", options.num_fewshot ? Json(*options.num_fewshot) : Json()},
                   {"fewshot_seed", options.fewshot_seed},
                   {"system_instruction",
                    options.system_instruction.empty() ? Json() : Json(options.system_instruction)},
                   {"bootstrap_iters", 100000}};
  if (options.suite == "lm-eval")
    out.set("chat_template", options.apply_chat_template)
        .set("fewshot_as_multiturn", options.fewshot_as_multiturn);
  for (const auto& [name, value] : suite.facts.object()) out.set(name, value);
  return out;
}

std::vector<evaluation::TaskResult> score_all(const LoadedSuite& suite) {
  std::map<double, evaluation::CodeCheck> checks;  // by their seconds
  std::vector<evaluation::TaskResult> out;
  for (const LoadedTask& task : suite.tasks) {
    if (task.run.items.empty()) continue;
    evaluation::CodeCheck& check = checks[task.run.task->code_seconds];
    if (!check) check = sandboxed_code_check(task.run.task->code_seconds);
    out.push_back(evaluation::score_task(task.run, check));
  }
  if (out.empty()) throw Failure({Errc::usage, "no item is evaluated; see --samples"});
  return out;
}

/// What the table does not say of the suite mindspeed.
std::string facts_text(const Json& facts) {
  const Json *mode = facts.find("mode"), *defects = facts.find("defects"),
             *lenient = facts.find("lenient"), *cells = facts.find("pandas_cells");
  if (mode == nullptr) return "";
  std::string out = cat("suite mindspeed, mode ", mode->string(),
                        "; defects of the reference: ", defects->string());
  if (lenient->boolean()) out += "; lenient: the first capital decides where it is right";
  if (cells->is_integer() && cells->integer() > 0)
    out += cat("; ", cells->integer(), " cells as pandas prints them");
  return out + '\n';
}

}  // namespace

std::optional<SuiteReport> evaluate_suite(const SuiteOptions& options,
                                          const model::ModelOptions& model) {
  if (transports::mpi::under_mpirun())
    throw Failure({Errc::unsupported,
                   "eval --task: ranks of mpirun do not share the items of a task; run one process "
                   "(--threads N), or `troupe serve` under mpirun with lm-evaluation-harness"});
  value_or_throw(check_output(options.output));
  const auto suite = value_or_throw(load_suite(options, model));
  if (options.print_prompt > 0) {
    print_prompts(suite->tasks);
    return std::nullopt;
  }
  answer_all(options, model, *suite);
  SuiteReport out{suite->selection, score_all(*suite), {}, facts_text(suite->facts)};
  out.json = evaluation::results_json(out.selection, out.tasks, config_of(options, model, *suite));
  out.json.set("model_name", model.model)
      .set("date", static_cast<std::int64_t>(std::time(nullptr)));
  write_results(options, out.json, out.tasks);
  return out;
}

int eval_suite(const SuiteOptions& options, const model::ModelOptions& model) {
  const auto report = evaluate_suite(options, model);
  if (!report) return 0;
  std::cout << (options.json
                    ? report->json.dump(2) + "\n"
                    : evaluation::results_table(report->selection, report->tasks) + report->facts);
  return 0;
}

}  // namespace troupe::launch::commands
