#include "launch/evaluation/mindspeed/task_forms.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/evaluation/mindspeed/prompts.h"
#include "launch/evaluation/python_random.h"
#include "launch/evaluation/shipped/subjects.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

using Context = std::function<Result<std::string>(const Json&)>;
using Texts = std::vector<std::string_view>;

const Texts truth_sets = {"navigate",         "sports_understanding", "boolean_expressions",
                          "formal_fallacies", "causal_judgement",     "web_of_lies"};
const Texts text_sets = {"multistep_arithmetic_two", "dyck_languages", "word_sorting",
                         "object_counting"};
const Texts several_letters = {"gaokao-physics", "jec-qa-kd", "jec-qa-ca"};
const Texts cloze = {"gaokao-mathcloze", "math"};

bool is_chinese(std::string_view subject) {
  return subject.starts_with("gaokao-") || subject.starts_with("jec-qa-") || subject == "logiqa-zh";
}

TaskForm asked(const char* reads_column, RuleSettings rule) {
  TaskForm out;
  out.rule = std::move(rule);
  out.target = [name = std::string(reads_column)](const Json& row) { return column(row, name); };
  return out;
}

Result<> add_search(const std::vector<SourceString>& patterns, const std::string& options,
                    LetterOf what, RuleSettings& out) {
  if (out.searches.contains(options)) return {};
  auto made = LetterSearch::create(patterns, options, what);
  RETURN_IF_ERROR(made);
  out.searches[options] = std::make_shared<const LetterSearch>(std::move(*made));
  return {};
}

Context direct_context(const std::string& task, const std::string& shown) {
  return [task, shown](const Json& row) -> Result<std::string> {
    const std::string question = question_with_choices(row);
    if (task == "ceval") return cat(shown, "\n\n问：", question, "\n答：");
    return cat(shown, "\n\n", question, task == "cmmlu" ? "\n答案： " : "\nAnswer:");
  };
}

}  // namespace

bool is_one_of(std::string_view name, const std::vector<std::string_view>& names) {
  return std::ranges::find(names, name) != names.end();
}

std::string chinese_subject(const std::string& task, const std::string& name) {
  const auto subjects = task == "ceval" ? ceval_subjects() : cmmlu_subjects();
  const auto found = std::ranges::find(subjects, name, &Subject::name);
  return found == subjects.end() ? name : std::string(found->chinese);
}

TaskForms::MaybeForm TaskForms::form_of(const std::string& task, const SubjectData& subject) {
  MaybeForm out = build(task, subject);
  if (!out || !*out) return out;
  TaskForm& form = **out;
  form.rule.fixed = settings_.fixed;
  if (form.generation.object().empty()) form.generation = generation();
  if (!settings_.plain || settings_.mode == Mode::chat || task == "mmlu_ppl") return out;
  form.context = [plain = settings_.plain,
                  own = form.context](const Json& row) -> Result<std::string> {
    const auto text = own(row);
    RETURN_IF_ERROR(text);
    return plain(Json(Json::Array{Json::Object{{"role", "user"}, {"content", *text}}}), false);
  };
  return out;
}

Json TaskForms::generation() const {
  return Json::Object{
      {"until", Json::Array{}}, {"max_gen_toks", settings_.new_tokens}, {"do_sample", false}};
}

TaskForms::MaybeForm TaskForms::build(const std::string& task, const SubjectData& subject) {
  if (task == "bbh") return bbh(subject);
  if (task == "agieval") return agieval(subject);
  if (task == "gsm8k") return gsm8k();
  if (task == "boolq") return boolq();
  if (task == "human_eval") return human_eval();
  if (task == "hellaswag") return hellaswag();
  return questions(task, subject);
}

/// The examples of a subject in a file of fewshot_template; nullopt: it has none.
Result<std::optional<Json>> TaskForms::examples(const std::string& file,
                                                const std::string& subject) {
  if (!files_.contains(file)) {
    auto read = checkout_.examples(file);
    RETURN_IF_ERROR(read);
    files_[file] = std::move(*read);
  }
  const Json* found = files_[file].find(subject);
  if (found == nullptr) return std::nullopt;
  return std::optional(*found);
}

/// MMLU, C-Eval and CMMLU.
TaskForms::MaybeForm TaskForms::questions(const std::string& task, const SubjectData& subject) {
  const std::string file = task == "mmlu_ppl" ? "mmlu" : task;
  const bool direct = settings_.mode == Mode::direct && task != "mmlu_ppl";
  std::string shown;
  if (direct || !settings_.checkout.empty()) {
    const auto found = examples(file + "_5shot_template.json", subject.name);
    RETURN_IF_ERROR(found);
    if (!*found) return std::nullopt;
    if ((*found)->is_string()) shown = (*found)->string();
  }
  auto rule = question_rule(task);
  RETURN_IF_ERROR(rule);
  TaskForm out = asked("answer", std::move(*rule));
  if (task == "ceval") out.target = [](const Json& row) { return stripped(column(row, "answer")); };
  if (task == "mmlu_ppl") {
    out.choices = {"A", "B", "C", "D"};
    out.scored = Scored::whole_text;
  }
  if (settings_.mode == Mode::chat)
    out.context = chat_context(task, subject);
  else if (direct)
    out.context = direct_context(task, shown);
  else
    out.context = dev_context(task, subject);
  return out;
}

Result<RuleSettings> TaskForms::question_rule(const std::string& task) const {
  RuleSettings out;
  const bool alternative = settings_.mode == Mode::alternative;
  if (task == "mmlu_ppl") {
    out.reads = Reads::likeliest;
    out.any_case = true;
  } else if (task == "ceval") {
    out.reads = settings_.mode == Mode::direct ? Reads::whole : Reads::capital;
  } else if (task == "mmlu" && !alternative) {
    out.reads = Reads::mmlu;
  } else {
    out.reads = Reads::letters;
    out.lenient = settings_.lenient && task == "mmlu";
    if (task == "mmlu") out.dropped = "Answer the question by replying A, B, C or D.";
    const auto patterns =
        task == "cmmlu" ? checkout_.cmmlu_patterns() : checkout_.letter_patterns("mmlu_utils.py");
    RETURN_IF_ERROR(patterns);
    RETURN_IF_ERROR(add_search(*patterns, "ABCD", LetterOf::last_character, out));
  }
  return out;
}

TaskForms::Context TaskForms::dev_context(const std::string& task,
                                          const SubjectData& subject) const {
  return [task, dev = subject.dev, name = subject.name,
          language = settings_.language](const Json& row) -> Result<std::string> {
    if (task == "mmlu_ppl") return mmlu_perplexity(row, dev, name);
    if (task == "mmlu") return mmlu_alternative(row, dev, name);
    if (task == "ceval") return ceval_alternative(row, dev, chinese_subject("ceval", name));
    return cmmlu_alternative(
        row, dev, language == Language::zh ? chinese_subject("cmmlu", name) : name, language);
  };
}

TaskForms::Context TaskForms::chat_context(const std::string& task,
                                           const SubjectData& subject) const {
  const bool chinese = task == "cmmlu" && settings_.language == Language::zh;
  const std::string name = chinese ? chinese_subject("cmmlu", subject.name) : subject.name;
  // DataFrame.sample(5, random_state=seed), anew for each row.
  auto order = numpy_permutation(subject.dev.size(), settings_.seed);
  order.resize(std::min<std::size_t>(order.size(), 5));
  return [dev = subject.dev, order, name, language = settings_.language,
          chat = settings_.chat](const Json& row) -> Result<std::string> {
    std::vector<const Json*> chosen;
    for (const std::size_t at : order) chosen.push_back(&dev[at]);
    return chat(chat_messages(row, chosen, name, language), true);
  };
}

TaskForms::MaybeForm TaskForms::bbh(const SubjectData& subject) {
  const bool reasons = settings_.mode == Mode::cot;
  const auto found =
      examples(reasons ? "bbh_cot_template.json" : "bbh_template.json", subject.name);
  RETURN_IF_ERROR(found);
  if (!*found) return std::nullopt;
  const bool truth = is_one_of(subject.name, truth_sets);
  const bool text = truth || is_one_of(subject.name, text_sets);
  RuleSettings rule{.reads = !reasons ? Reads::bbh
                             : text   ? Reads::bbh_text
                                      : Reads::bbh_choice,
                    .truth = truth,
                    .any_case = true};
  TaskForm out = asked("target", std::move(rule));
  out.target = [](const Json& row) {
    std::string target = column(row, "target");
    target.erase(0, target.find_first_not_of('('));
    return target.erase(target.find_last_not_of(')') + 1);
  };
  out.context = [shown = (*found)->is_string() ? (*found)->string() : "",
                 reasons](const Json& row) -> Result<std::string> {
    return cat(shown, "Q: ", column(row, "input"),
               reasons ? "\nA: Let's think step by step." : "\nA:");
  };
  return out;
}

TaskForms::MaybeForm TaskForms::agieval(const SubjectData& subject) {
  const bool alternative = settings_.mode == Mode::alternative;
  const std::string joint = settings_.fixed && is_one_of(subject.name, several_letters) ? "" : ",";
  TaskForm out = asked("answer", {.reads = Reads::agieval_line});
  out.target = [joint](const Json& row) { return agieval_gold(row, joint); };
  if (alternative) return agieval_alternative_form(subject, std::move(out));
  const auto found = examples("AGI_fewshot.json", subject.name);
  RETURN_IF_ERROR(found);
  if (!*found) return std::nullopt;
  std::vector<std::string> parts;
  if ((*found)->is_array())
    for (const Json& each : (*found)->array())
      parts.push_back(each.is_string() ? each.string() : "");
  if (parts.size() != 3)
    return fail(Errc::bad_input,
                cat("AGI_fewshot.json: ", subject.name, ": expected a list of three texts"));
  out.context = [parts](const Json& row) -> Result<std::string> {
    return agieval_direct(row, parts);
  };
  return out;
}

TaskForms::MaybeForm TaskForms::agieval_alternative_form(const SubjectData& subject, TaskForm out) {
  const auto sentences = checkout_.agieval_sentences();
  RETURN_IF_ERROR(sentences);
  const auto found = sentences->find(subject.name);
  if (found == sentences->end()) return std::nullopt;
  out.context = [sentence = found->second,
                 chinese = is_chinese(subject.name)](const Json& row) -> Result<std::string> {
    return agieval_alternative(row, sentence, chinese);
  };
  if (is_one_of(subject.name, several_letters)) {
    out.rule.reads = Reads::agieval_run;
  } else if (is_one_of(subject.name, cloze)) {
    out.rule.reads = Reads::agieval_cloze;
  } else {
    out.rule.reads = Reads::letters;
    const auto patterns = checkout_.letter_patterns("agi_utils.py");
    RETURN_IF_ERROR(patterns);
    for (const Json& row : subject.rows)
      RETURN_IF_ERROR(add_search(*patterns, option_letters(row), LetterOf::first_group, out.rule));
  }
  return out;
}

TaskForms::MaybeForm TaskForms::gsm8k() {
  const bool reasons = settings_.mode == Mode::cot;
  std::string shown;
  if (reasons) {
    auto found = checkout_.gsm8k_reasoning();
    RETURN_IF_ERROR(found);
    shown = std::move(*found);
  } else {
    const auto found = examples("gsm8k_3shot_template.json", "few_shot");
    RETURN_IF_ERROR(found);
    if (!*found) return std::nullopt;
    if ((*found)->is_string()) shown = (*found)->string() + "\n\n";
  }
  TaskForm out = asked("answer", {.reads = reasons ? Reads::gsm8k_reasoned : Reads::gsm8k});
  out.target = [fixed = settings_.fixed](const Json& row) {
    const std::string answer = column(row, "answer");
    const std::size_t at = answer.rfind("#### ");
    const std::string gold = at == std::string::npos ? answer : answer.substr(at + 5);
    return fixed ? replaced(gold, ",", "") : gold;
  };
  out.context = [shown, reasons](const Json& row) -> Result<std::string> {
    return cat(shown, column(row, "question"),
               reasons ? "\nLet's think step by step\nAnswer:" : "");
  };
  return out;
}

TaskForms::MaybeForm TaskForms::boolq() const {
  const bool alternative = settings_.mode == Mode::alternative;
  RuleSettings rule;
  rule.reads = alternative ? Reads::capital : Reads::likelier;
  rule.maps_words = settings_.maps_words;
  TaskForm out = asked("answer", std::move(rule));
  out.target = [alternative](const Json& row) {
    const Json* answer = row.find("answer");
    const bool yes = answer != nullptr && answer->is_bool() && answer->boolean();
    return std::string(alternative ? (yes ? "A" : "B") : (yes ? "T" : "F"));
  };
  if (!alternative) {
    out.choices = {"Yes", "No"};
    out.scored = Scored::last_token;
  }
  out.context = [alternative](const Json& row) -> Result<std::string> {
    const std::string asks = cat(column(row, "passage"), "\nQuestion: ", column(row, "question"));
    if (!alternative) return cat(asks, "?\nAnswer:");
    return cat(column(row, "title"), " -- ", asks, "\nA. Yes\nB. No\nAnswer:");
  };
  return out;
}

TaskForms::MaybeForm TaskForms::human_eval() const {
  const bool alternative = settings_.mode == Mode::alternative;
  TaskForm out = asked("test", {.reads = alternative ? Reads::fenced : Reads::program});
  out.generation = generation();
  // evaluation.py searches with four beams there.
  if (!alternative) out.generation.set("num_beams", 4).set("length_penalty", 0.7);
  std::string form = "Complete the following python code:\n{prompt}";
  if (!alternative)
    form = settings_.instruction_template.empty()
               ? "The definition and function description of the python function are as follows. "
                 "Please complete the implementation of the python function.\n{prompt}"
               : settings_.instruction_template;
  out.context = [form](const Json& row) -> Result<std::string> {
    return filled(form, {{"prompt", column(row, "prompt")}});
  };
  return out;
}

TaskForms::MaybeForm TaskForms::hellaswag() {
  const auto form = checkout_.hellaswag_prompt();
  RETURN_IF_ERROR(form);
  const auto patterns = checkout_.letter_patterns("mmlu_utils.py");
  RETURN_IF_ERROR(patterns);
  RuleSettings rule{.reads = Reads::letters, .any_case = true};
  rule.dropped = "Answer the question by replying A, B, C or D.";
  RETURN_IF_ERROR(add_search(*patterns, "ABCD", LetterOf::last_character, rule));
  TaskForm out = asked("gold", std::move(rule));
  out.target = [](const Json& row) {
    return std::string(1, static_cast<char>('A' + row.find("gold")->integer()));
  };
  out.context = [form = *form](const Json& row) -> Result<std::string> {
    std::string question = column(row, "query");
    const std::size_t colon = question.find(':');
    if (colon != std::string::npos) question.erase(0, std::min(colon + 2, question.size()));
    std::map<std::string, std::string> fields = {{"ctx", question}};
    const Json::Array& choices = row.find("choices")->array();
    if (choices.size() != 4)
      return fail(Errc::bad_input, cat("expected four choices, found ", choices.size()));
    for (std::size_t i = 0; i < 4; ++i)
      fields[std::string(1, static_cast<char>('A' + i))] = python_text(choices[i]);
    return filled(form, fields);
  };
  return out;
}

}  // namespace troupe::launch::evaluation::mindspeed
