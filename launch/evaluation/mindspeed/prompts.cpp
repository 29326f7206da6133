#include "launch/evaluation/mindspeed/prompts.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

std::string spaced(std::string text) {
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::string options_of(const Json& row) {
  const Json* options = row.find("options");
  if (options == nullptr || !options->is_array()) return "";
  std::vector<std::string> out;
  for (const Json& each : options->array())
    out.push_back(each.is_string() ? each.string() : python_text(each));
  return join(out, "\n");
}

/// {begin}{question with choices}{ends}{answer}{after}, of a row of dev.
std::string example(const Json& row, const std::string& begin, std::string_view ends,
                    std::string_view between, std::string_view after) {
  return cat(begin, question_with_choices(row), ends, between, column(row, "answer"), after);
}

}  // namespace

std::string column(const Json& row, std::string_view name) {
  const Json* found = row.find(name);
  return found != nullptr && found->is_string() ? found->string() : "";
}

std::string filled(std::string_view form, const std::map<std::string, std::string>& fields) {
  std::string out;
  while (!form.empty()) {
    const std::size_t open = form.find('{');
    out += form.substr(0, open);
    if (open == std::string_view::npos) break;
    form.remove_prefix(open);
    const std::size_t close = form.find('}');
    const auto found = close == std::string_view::npos
                           ? fields.end()
                           : fields.find(std::string(form.substr(1, close - 1)));
    out += found == fields.end() ? "{" : found->second;
    form.remove_prefix(found == fields.end() ? 1 : close + 1);
  }
  return out;
}

std::string question_with_choices(const Json& row) {
  std::string out = column(row, "question");
  for (const char* letter : {"A", "B", "C", "D"})
    out += cat("\n", letter, ". ", column(row, letter));
  return out;
}

std::string mmlu_alternative(const Json& row, const std::vector<Json>& dev,
                             const std::string& subject) {
  const std::string begin = cat("There is a single choice question about ", spaced(subject),
                                ". Answer the question by replying A, B, C or D. \nQuestion: ");
  std::string out;
  for (const Json& each : dev) out += example(each, begin, "\nAnswer: ", "\n", "\n\n");
  return cat(out, begin, question_with_choices(row), "\nAnswer: ");
}

std::string mmlu_perplexity(const Json& row, const std::vector<Json>& dev,
                            const std::string& subject) {
  std::string out = cat("The following are multiple choice questions (with answers) about  ",
                        spaced(subject), ".\n\n");
  for (const Json& each : dev) out += example(each, "", "\nAnswer: ", "", "\n\n");
  return cat(out, question_with_choices(row), "\nAnswer: ");
}

std::string ceval_alternative(const Json& row, const std::vector<Json>& dev,
                              const std::string& subject) {
  const std::string begin =
      cat("以下是中国关于", subject, "考试的单项选择题，请选出其中的正确答案。\n");
  std::string out;
  for (const Json& each : dev) out += example(each, begin, "\n答案: ", "\n", "\n");
  return cat(out, begin, question_with_choices(row), "\n答案: ");
}

std::string cmmlu_alternative(const Json& row, const std::vector<Json>& dev,
                              const std::string& subject, Language language) {
  const std::string begin =
      language == Language::zh
          ? cat("以下是关于", subject, "的单项选择题，请直接给出正确答案的选项。\n题目：")
          : cat("There is a single choice question about ", spaced(subject),
                ". Answer the question by replying A, B, C or D. \nQuestion: ");
  std::string out;
  for (const Json& each : dev) out += example(each, begin, "\n答案是: ", "", "\n");
  return cat(out, begin, question_with_choices(row), "\n答案是: ");
}

Json chat_messages(const Json& row, const std::vector<const Json*>& examples,
                   const std::string& subject, Language language) {
  const bool chinese = language == Language::zh;
  const std::string ends = chinese ? "\n答案：" : "\nAnswer: ";
  Json::Array out;
  const auto add = [&](const char* role, std::string text) {
    out.push_back(Json::Object{{"role", role}, {"content", std::move(text)}});
  };
  std::string begin =
      chinese ? cat("以下是中国关于", subject, "考试的单项选择题，请选出其中的正确答案。\n\n")
              : cat("The following are multiple choice questions (with answers) about ", subject,
                    ".\n\n");
  for (const Json* each : examples) {
    add("user", begin + question_with_choices(*each) + ends);
    add("assistant", column(*each, "answer"));
    begin.clear();
  }
  add("user", begin + question_with_choices(row) + ends);
  return Json(std::move(out));
}

std::string agieval_direct(const Json& row, const std::vector<std::string>& parts) {
  std::string question = column(row, "question");
  if (const std::string passage = column(row, "passage"); !passage.empty())
    question = cat(passage, "\n", question);
  return cat(parts[0], "   ", question, "\n", parts[1], "\n", options_of(row), "\n", parts[2]);
}

std::string agieval_alternative(const Json& row, const std::string& sentence, bool chinese) {
  const std::string options = stripped(options_of(row));
  return cat(sentence, "\n", column(row, "passage"), column(row, "question"), "\n", options,
             options_of(row).empty() ? "" : "\n", chinese ? "答案是： " : "The answer is ");
}

std::string agieval_gold(const Json& row, std::string_view joint) {
  const Json* label = row.find("label");
  if (label != nullptr && label->is_array() && !label->array().empty()) {
    std::vector<std::string> out;
    for (const Json& each : label->array()) out.push_back(python_text(each));
    return join(out, std::string(joint));
  }
  if (label != nullptr && label->is_string() && !label->string().empty()) return label->string();
  return replaced(column(row, "answer"), "$", "");
}

}  // namespace troupe::launch::evaluation::mindspeed
