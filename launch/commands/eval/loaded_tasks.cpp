#include "launch/commands/eval/loaded_tasks.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "engine/base/files/file.h"
#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/data/layouts/marked_text.h"
#include "launch/commands/eval/chat_text.h"
#include "launch/evaluation/bbh_examples.h"
#include "launch/evaluation/mindspeed/suite_tasks.h"
#include "launch/evaluation/task_data.h"

namespace troupe::launch::commands {
namespace {

namespace mindspeed = evaluation::mindspeed;
using evaluation::TaskConfig;

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

/// Leaves out what --limit and --print-prompt leave out.
void shorten(std::vector<std::int64_t>& numbers, const SuiteOptions& options) {
  if (options.print_prompt > 0 && std::ssize(numbers) > options.print_prompt)
    numbers.resize(static_cast<std::size_t>(options.print_prompt));
}

Result<> check_code(const TaskConfig& task, const SuiteOptions& options) {
  if (!task.runs_code || options.allow_code || options.print_prompt > 0) return {};
  return fail(Errc::usage, cat(task.name,
                               " runs programs that the model writes; give --allow-code to run "
                               "them in the sandbox (docs/evaluation.md)"));
}

Result<LoadedTask> load_task(const TaskConfig& task, const SuiteOptions& options,
                             const evaluation::RenderTurns& render, const Json& chosen) {
  RETURN_IF_ERROR(check_code(task, options));
  const bool examples =
      options.num_fewshot.value_or(task.num_fewshot.value_or(0)) > 0 && task.num_fewshot != 0;
  LoadedTask out;
  auto rows = evaluation::load_rows(task, {options.task_data, options.fewshot_data}, examples);
  RETURN_IF_ERROR(rows);
  out.rows = std::move(*rows);
  auto prompts = evaluation::TaskPrompts::create(
      task, out.rows,
      {options.num_fewshot, static_cast<std::uint64_t>(options.fewshot_seed),
       options.system_instruction, render, options.fewshot_as_multiturn});
  RETURN_IF_ERROR(prompts);
  auto numbers = item_numbers(task, std::ssize(out.rows.items), options, chosen);
  RETURN_IF_ERROR(numbers);
  out.run.task = &task;
  out.run.num_fewshot = prompts->num_fewshot();
  shorten(*numbers, options);
  for (const std::int64_t number : *numbers) {
    auto item = prompts->item(number);
    RETURN_IF_ERROR(item);
    out.run.items.push_back(std::move(*item));
  }
  return out;
}

/// The rendering of --apply-chat-template; empty without it.
Result<evaluation::RenderTurns> turns_renderer(const SuiteOptions& options,
                                               const model::ModelOptions& model) {
  if (!options.apply_chat_template) return evaluation::RenderTurns();
  const auto text = load_chat_text(model, options.chat_template);
  RETURN_IF_ERROR(text);
  return evaluation::RenderTurns([text = *text](const Json& messages) {
    return engine::data::render_prompt(messages, Json(), *text);
  });
}

Result<> load_lm_eval(const SuiteOptions& options, const model::ModelOptions& model,
                      const Json& chosen, LoadedSuite& out) {
  const auto render = turns_renderer(options, model);
  RETURN_IF_ERROR(render);
  const auto library = evaluation::TaskLibrary::load(options.include_paths);
  RETURN_IF_ERROR(library);
  auto selection = library->select(options.tasks);
  RETURN_IF_ERROR(selection);
  out.selection = std::move(*selection);
  const std::string& examples =
      options.fewshot_data.empty() ? options.task_data : options.fewshot_data;
  out.tasks.reserve(out.selection.tasks.size());  // items keep their places
  for (TaskConfig& task : out.selection.tasks) {
    RETURN_IF_ERROR(evaluation::add_bbh_prompt(task, examples));
    auto loaded = load_task(task, options, *render, chosen);
    RETURN_IF_ERROR(loaded);
    out.tasks.push_back(std::move(*loaded));
  }
  return {};
}

mindspeed::RenderChat renderer(const std::shared_ptr<run::TextModel>& text) {
  return [text](const Json& messages, bool answer_follows) -> Result<std::string> {
    const auto rendered = text->render_chat(messages, answer_follows, Json());
    RETURN_IF_ERROR(rendered);
    return rendered->text;
  };
}

/// What the suite asks of a chat template: in chat mode dialogues, otherwise one message.
Result<> add_templates(const SuiteOptions& options, const model::ModelOptions& model,
                       mindspeed::SuiteSettings& settings) {
  if (options.no_chat_template && options.mode != mindspeed::Mode::chat) return {};
  const auto text = load_chat_text(model, options.chat_template);
  RETURN_IF_ERROR(text);
  if (options.mode == mindspeed::Mode::chat) {
    settings.chat = renderer(*text);
    return {};
  }
  if (!(*text)->has_chat_template()) return {};
  log_warning(
      "each prompt is a message of the model's chat template, without the beginning of an answer, "
      "as MindSpeed-LLM has it; --no-chat-template leaves the template out");
  settings.plain = renderer(*text);
  return {};
}

Json facts_of(const mindspeed::SuiteSettings& settings, const mindspeed::SuiteTasks& tasks) {
  Json::Array skipped;
  for (const std::string& name : tasks.skipped) skipped.emplace_back(name);
  return Json::Object{{"mode", name_of(settings.mode)},
                      {"language", name_of(settings.language)},
                      {"max_new_tokens", settings.new_tokens},
                      {"defects", settings.fixed ? "corrected" : "reproduced"},
                      {"lenient", settings.lenient},
                      {"chat_template", static_cast<bool>(settings.plain)},
                      {"pandas_cells", settings.pandas_cells ? Json(tasks.pandas_cells) : Json()},
                      {"skipped_subjects", std::move(skipped)}};
}

Result<> load_mindspeed(const SuiteOptions& options, const model::ModelOptions& model,
                        const Json& chosen, LoadedSuite& out) {
  mindspeed::SuiteSettings settings{.mode = options.mode, .language = options.language};
  settings.data = options.task_data;
  settings.checkout = options.fewshot_data;
  settings.new_tokens = options.max_new_tokens.value_or(settings.new_tokens);
  settings.seed = static_cast<std::uint32_t>(options.fewshot_seed);
  settings.instruction_template = options.instruction_template;
  settings.fixed = options.fixed;
  settings.pandas_cells = options.pandas_cells;
  settings.lenient = options.lenient;
  settings.maps_words = options.maps_words;
  RETURN_IF_ERROR(add_templates(options, model, settings));
  auto tasks = mindspeed::suite_tasks(options.tasks, settings);
  RETURN_IF_ERROR(tasks);
  out.facts = facts_of(settings, *tasks);
  out.selection = std::move(tasks->selection);
  out.tasks.reserve(out.selection.tasks.size());
  for (std::size_t t = 0; t < out.selection.tasks.size(); ++t) {
    const TaskConfig& task = out.selection.tasks[t];
    RETURN_IF_ERROR(check_code(task, options));
    LoadedTask loaded;
    loaded.rows = std::move(tasks->rows[t]);
    loaded.run.task = &task;
    loaded.run.num_fewshot = task.num_fewshot.value_or(0);
    auto numbers = item_numbers(task, std::ssize(loaded.rows.items), options, chosen);
    RETURN_IF_ERROR(numbers);
    shorten(*numbers, options);
    for (const std::int64_t number : *numbers)
      loaded.run.items.push_back(std::move(tasks->items[t][static_cast<std::size_t>(number)]));
    out.tasks.push_back(std::move(loaded));
  }
  return {};
}

/// Options of one suite that are given with the other.
Result<> check_suite(const SuiteOptions& options) {
  const bool mindspeed = options.suite == "mindspeed";
  const auto refuse = [&](bool given, const char* name) -> Result<> {
    if (!given) return {};
    return fail(Errc::usage,
                cat(name, " belongs to the suite ", mindspeed ? "lm-eval" : "mindspeed",
                    "; the suite is ", options.suite, " (docs/evaluation.md)"));
  };
  if (mindspeed) {
    RETURN_IF_ERROR(refuse(options.apply_chat_template, "--apply-chat-template"));
    RETURN_IF_ERROR(refuse(options.fewshot_as_multiturn, "--fewshot-as-multiturn"));
    RETURN_IF_ERROR(refuse(options.num_fewshot.has_value(), "--num-fewshot"));
    RETURN_IF_ERROR(refuse(!options.system_instruction.empty(), "--system-instruction"));
    return refuse(!options.include_paths.empty(), "--include-path");
  }
  RETURN_IF_ERROR(refuse(options.mode != mindspeed::Mode::direct, "--mode"));
  RETURN_IF_ERROR(refuse(options.language != mindspeed::Language::en, "--eval-language"));
  RETURN_IF_ERROR(refuse(options.fixed, "--fixed"));
  RETURN_IF_ERROR(refuse(options.lenient, "--lenient"));
  RETURN_IF_ERROR(refuse(!options.pandas_cells, "--no-pandas-cells"));
  RETURN_IF_ERROR(refuse(options.no_chat_template, "--no-chat-template"));
  if (!options.apply_chat_template && options.fewshot_as_multiturn)
    return fail(Errc::usage, "--fewshot-as-multiturn needs --apply-chat-template");
  if (!options.apply_chat_template && !options.chat_template.empty())
    return fail(Errc::usage, "--chat-template needs --apply-chat-template with --suite lm-eval");
  return refuse(options.max_new_tokens.has_value(), "--max-new-tokens");
}

}  // namespace

Result<std::unique_ptr<LoadedSuite>> load_suite(const SuiteOptions& options,
                                                const model::ModelOptions& model) {
  RETURN_IF_ERROR(check_suite(options));
  const auto chosen = chosen_samples(options);
  RETURN_IF_ERROR(chosen);
  auto out = std::make_unique<LoadedSuite>();
  if (options.suite == "mindspeed")
    RETURN_IF_ERROR(load_mindspeed(options, model, *chosen, *out));
  else
    RETURN_IF_ERROR(load_lm_eval(options, model, *chosen, *out));
  for (LoadedTask& task : out->tasks) task.run.rows = &task.rows;
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

}  // namespace troupe::launch::commands
