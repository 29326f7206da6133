// TaskForm: how the rows of a subject of the suite mindspeed are asked and ruled.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/evaluation/mindspeed/answer_rules.h"
#include "launch/evaluation/mindspeed/checkout.h"
#include "launch/evaluation/mindspeed/subject_data.h"

namespace troupe::launch::evaluation::mindspeed {

struct TaskForm {
  std::function<Result<std::string>(const Json& row)> context;
  std::function<std::string(const Json& row)> target;
  RuleSettings rule;
  std::vector<std::string> choices = {};  ///< scored, in the place of a generated answer
  Scored scored = Scored::continuation;
  Json generation = Json::Object{};
};

/// Makes the forms of the tasks of a suite, in its mode; `settings` outlives it.
class TaskForms {
 public:
  explicit TaskForms(const SuiteSettings& settings)
      : settings_(settings), checkout_(settings.checkout) {}

  /// nullopt: MindSpeed-LLM has no examples of the subject, and leaves it out. Errc::usage,
  /// not_found, bad_input.
  Result<std::optional<TaskForm>> form_of(const std::string& task, const SubjectData& subject);

 private:
  using MaybeForm = Result<std::optional<TaskForm>>;
  using Context = std::function<Result<std::string>(const Json&)>;

  MaybeForm build(const std::string& task, const SubjectData& subject);
  MaybeForm questions(const std::string& task, const SubjectData& subject);
  MaybeForm bbh(const SubjectData& subject);
  MaybeForm agieval(const SubjectData& subject);
  MaybeForm agieval_alternative_form(const SubjectData& subject, TaskForm out);
  MaybeForm gsm8k();
  MaybeForm boolq() const;
  MaybeForm human_eval() const;
  MaybeForm hellaswag();
  Result<RuleSettings> question_rule(const std::string& task) const;
  Context dev_context(const std::string& task, const SubjectData& subject) const;
  Context chat_context(const std::string& task, const SubjectData& subject) const;
  Result<std::optional<Json>> examples(const std::string& file, const std::string& subject);
  Json generation() const;

  const SuiteSettings& settings_;
  Checkout checkout_;
  std::map<std::string, Json> files_;
};

bool is_one_of(std::string_view name, const std::vector<std::string_view>& names);

/// The name of a subject in Chinese, or the name.
std::string chinese_subject(const std::string& task, const std::string& name);

}  // namespace troupe::launch::evaluation::mindspeed
