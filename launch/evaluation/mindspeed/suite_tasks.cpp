#include "launch/evaluation/mindspeed/suite_tasks.h"

#include <algorithm>

#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "launch/evaluation/mindspeed/prompts.h"
#include "launch/evaluation/mindspeed/task_forms.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

class Builder {
 public:
  explicit Builder(const SuiteSettings& settings) : settings_(settings), forms_(settings) {}

  Result<> add(const std::string& task, SuiteTasks& out) {
    const bool questions = is_one_of(task, {"mmlu", "ceval", "cmmlu", "mmlu_ppl"});
    const bool dev = questions && (settings_.mode != Mode::direct || task == "mmlu_ppl");
    auto subjects = subjects_of(task, dev, settings_);
    RETURN_IF_ERROR(subjects);
    GroupConfig group{.name = task, .alias = task, .where = settings_.data};
    group.metrics = {{"acc", true, {}}};
    for (SubjectData& subject : *subjects) {
      auto form = forms_.form_of(task, subject);
      RETURN_IF_ERROR(form);
      if (!*form) {
        log_warning(cat(task, ": no examples of ", subject.name,
                        "; it is left out, as MindSpeed-LLM leaves it out"));
        out.skipped.push_back(cat(task, '_', subject.name));
        continue;
      }
      group.members.push_back(cat(task, '_', subject.name));
      RETURN_IF_ERROR(add_subject(task, subject, **form, out));
    }
    if (group.members.empty())
      return fail(Errc::bad_input, cat(task, ": no subject of ", settings_.data, " has examples"));
    out.selection.groups.push_back(std::move(group));
    return {};
  }

 private:
  TaskConfig config_of(const std::string& task, const SubjectData& subject,
                       const TaskForm& form) const {
    TaskConfig config;
    config.name = cat(task, '_', subject.name);
    config.alias = alias_of(task, subject);
    config.where = subject.file;
    config.output_type =
        form.choices.empty() ? OutputType::generate_until : OutputType::multiple_choice;
    config.metrics = {{.name = "acc"}};
    config.filters = {{"none", {}}};
    config.generation = form.generation;
    config.scored = form.scored;
    config.rule = make_rule(form.rule);
    config.runs_code = task == "human_eval";
    config.code_seconds = task == "human_eval" && settings_.mode == Mode::direct ? 10 : 3;
    config.counts_all_rows = task == "bbh" && !settings_.fixed;
    config.num_fewshot = examples_of(task, subject);
    config.version = "2.2.0";
    config.keys = Json::Object{{"task", config.name},
                               {"suite", "mindspeed"},
                               {"mode", name_of(settings_.mode)},
                               {"generation_kwargs", form.generation}};
    return config;
  }

  Result<> add_subject(const std::string& task, SubjectData& subject, const TaskForm& form,
                       SuiteTasks& out) {
    if (task == "bbh" && settings_.mode == Mode::direct) {
      const auto length = [](const Json& row) { return count_code_points(column(row, "input")); };
      std::ranges::stable_sort(subject.rows, {}, length);
    }
    TaskConfig config = config_of(task, subject, form);
    std::vector<TaskItem> items;
    for (const Json& row : subject.rows) {
      auto context = form.context(row);
      if (!context)
        return fail(context.error().code, cat(subject.file, ": ", context.error().what));
      items.push_back({.number = std::ssize(items),
                       .context = std::move(*context),
                       .target = form.target(row),
                       .choices = form.choices,
                       .continuations = form.choices});
    }
    out.pandas_cells += subject.pandas_cells;
    out.selection.tasks.push_back(std::move(config));
    out.rows.push_back({std::move(subject.rows), {}});
    out.items.push_back(std::move(items));
    return {};
  }

  /// Examples before each row; those of AGIEval differ and are not counted.
  std::int64_t examples_of(const std::string& task, const SubjectData& subject) const {
    if (task == "bbh") return 3;
    if (task == "gsm8k") return settings_.mode == Mode::cot ? 4 : 3;
    if (!is_one_of(task, {"mmlu", "mmlu_ppl", "ceval", "cmmlu"})) return 0;
    const std::int64_t dev = std::ssize(subject.dev);
    return settings_.mode == Mode::direct && dev == 0 ? 5
           : settings_.mode == Mode::chat             ? std::min<std::int64_t>(dev, 5)
                                                      : dev;
  }

  static std::string alias_of(const std::string& task, const SubjectData& subject) {
    if (task == "cmmlu") return chinese_subject(task, subject.name);
    if (task == "gsm8k" || task == "human_eval") return task;
    if (task == "boolq") return subject.file.substr(subject.file.rfind('/') + 1);
    return subject.name;
  }

  const SuiteSettings& settings_;
  TaskForms forms_;
};

}  // namespace

const std::vector<std::string>& suite_task_names() {
  static const std::vector<std::string> all = {"mmlu",       "mmlu_ppl", "ceval",   "cmmlu",
                                               "boolq",      "bbh",      "agieval", "gsm8k",
                                               "human_eval", "hellaswag"};
  return all;
}

bool has_mode(const std::string& task, Mode mode) {
  switch (mode) {
    case Mode::direct:
      return true;
    case Mode::chat:
      return is_one_of(task, {"mmlu", "ceval", "cmmlu"});
    case Mode::alternative:
      return is_one_of(task, {"mmlu", "ceval", "cmmlu", "boolq", "agieval", "human_eval"});
    case Mode::cot:
      return is_one_of(task, {"bbh", "gsm8k"});
  }
  return false;
}

Result<SuiteTasks> suite_tasks(const std::vector<std::string>& names,
                               const SuiteSettings& settings) {
  SuiteTasks out;
  Builder builder(settings);
  for (const std::string& name : names) {
    if (std::ranges::find(suite_task_names(), name) == suite_task_names().end()) {
      const std::string near = nearest(name, suite_task_names());
      return fail(Errc::usage, cat("the suite mindspeed has no task ", quote(name),
                                   near.empty() ? "" : cat("; did you mean ", near, '?'),
                                   "; there are ", join(suite_task_names(), ", ")));
    }
    if (!has_mode(name, settings.mode))
      return fail(Errc::usage, cat(name, " has no mode ", name_of(settings.mode),
                                   " in MindSpeed-LLM (docs/evaluation.md)"));
    RETURN_IF_ERROR(builder.add(name, out));
  }
  return out;
}

}  // namespace troupe::launch::evaluation::mindspeed
