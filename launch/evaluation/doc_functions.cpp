#include "launch/evaluation/doc_functions.h"

#include <functional>
#include <initializer_list>
#include <map>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/jinja/case.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation {
namespace {

/// The texts of columns; a missing one is an error.
Result<std::vector<std::string>> texts_of(const Json& row,
                                          std::initializer_list<std::string_view> columns) {
  std::vector<std::string> out;
  for (const std::string_view column : columns) {
    const Json* found = row.find(column);
    // An empty cell of a csv file is null.
    if (found == nullptr || (!found->is_string() && !found->is_null()))
      return fail(Errc::bad_input, cat("expected a column ", quote(column), " with a text, found ",
                                       found == nullptr ? "none" : found->type_name()));
    out.push_back(found->is_null() ? "" : found->string());
  }
  return out;
}

// hendrycks/test: question, A, B, C, D, and the letter of the answer.
Result<Json> mmlu(Json row) {
  if (row.find("choices") != nullptr) return row;
  auto texts = texts_of(row, {"question", "A", "B", "C", "D", "answer"});
  RETURN_IF_ERROR(texts);
  const std::string& letter = texts->back();
  if (letter.size() != 1 || letter[0] < 'A' || letter[0] > 'D')
    return fail(Errc::bad_input, cat("answer: expected A, B, C or D, found ", quote(letter)));
  Json::Array choices;
  for (std::size_t i = 1; i <= 4; ++i) choices.emplace_back((*texts)[i]);
  return Json(Json::Object{{"question", (*texts)[0]},
                           {"choices", std::move(choices)},
                           {"answer", std::int64_t{letter[0] - 'A'}}});
}

// google-research-datasets/boolean-questions: the answer is a boolean.
Result<Json> boolq(Json row) {
  if (row.find("label") != nullptr) return row;
  const Json* answer = row.find("answer");
  if (answer == nullptr || !answer->is_bool())
    return fail(Errc::bad_input, "expected a column label, or a column answer with true or false");
  const std::int64_t label = answer->boolean() ? 1 : 0;
  row.set("label", label);
  return row;
}

// ai2_arc as its authors publish it: question.stem and question.choices of text and label.
Result<Json> arc(Json row) {
  const Json* question = row.find("question");
  if (question == nullptr || !question->is_object()) return row;
  const Json *stem = question->find("stem"), *choices = question->find("choices"),
             *key = row.find("answerKey");
  if (stem == nullptr || choices == nullptr || !choices->is_array() || key == nullptr)
    return fail(Errc::bad_input, "expected question.stem, question.choices and answerKey");
  Json::Array texts, labels;
  for (const Json& each : choices->array()) {
    const Json *text = each.find("text"), *label = each.find("label");
    if (text == nullptr || label == nullptr)
      return fail(Errc::bad_input, "expected choices with text and label");
    texts.push_back(*text);
    labels.push_back(*label);
  }
  Json out = Json::Object{{"question", *stem}};
  out.set("choices", Json::Object{{"text", std::move(texts)}, {"label", std::move(labels)}});
  out.set("answerKey", *key);
  return out;
}

std::string hellaswag_text(const std::string& text) {
  std::string out = replaced(stripped(text), " [title]", ". ");
  static const Regex brackets = value_or_throw(python_regex(R"(\[.*?\])", "hellaswag"));
  out = value_or_throw(substitute(brackets, out, ""));
  return replaced(out, "  ", " ");
}

Result<Json> hellaswag(Json row) {
  auto texts = texts_of(row, {"ctx_a", "ctx_b", "activity_label"});
  RETURN_IF_ERROR(texts);
  const Json *endings = row.find("endings"), *label = row.find("label");
  if (endings == nullptr || !endings->is_array() || label == nullptr)
    return fail(Errc::bad_input, "expected the columns endings and label");
  const std::string context =
      cat((*texts)[2], ": ", (*texts)[0], " ", engine::jinja::capitalize((*texts)[1]));
  Json::Array choices;
  for (const Json& ending : endings->array()) {
    if (!ending.is_string()) return fail(Errc::bad_input, "endings: expected texts");
    choices.emplace_back(hellaswag_text(ending.string()));
  }
  const std::string gold = label->is_string() ? label->string() : label->dump();
  const auto number = parse_number<std::int64_t>(gold);
  if (!number || *number < 0)
    return fail(Errc::bad_input, "label: expected the number of an ending");
  row.set("query", hellaswag_text(context)).set("choices", std::move(choices));
  row.set("gold", *number);
  return row;
}

// Removes white space inside a pair of marks: r"\(\s*([^\)]*?)\s*\)" -> r"(\1)".
std::string tightened(const std::string& text, const std::string& pattern, char open, char close) {
  const Regex regex = value_or_throw(python_regex(pattern, "wikitext"));
  std::string out;
  std::size_t at = 0;
  for (const auto& match : value_or_throw(regex.find_groups(text))) {
    out += text.substr(at, match[0].begin - at);
    out += open;
    out += text.substr(match[1].begin, match[1].end - match[1].begin);
    out += close;
    at = match[0].end;
  }
  return out += text.substr(at);
}

Result<Json> wikitext(Json row) {
  const auto texts = texts_of(row, {"page"});
  RETURN_IF_ERROR(texts);
  std::string text = replaced(texts->front(), "s '", "s'");
  static const Regex digits = value_or_throw(python_regex("/' [0-9]/", "wikitext"));
  text = value_or_throw(substitute(digits, text, "/'[0-9]/"));
  for (const auto& [old, with] :
       std::initializer_list<std::pair<const char*, const char*>>{{" @-@ ", "-"},
                                                                  {" @,@ ", ","},
                                                                  {" @.@ ", "."},
                                                                  {" : ", ": "},
                                                                  {" ; ", "; "},
                                                                  {" . ", ". "},
                                                                  {" ! ", "! "},
                                                                  {" ? ", "? "},
                                                                  {" , ", ", "}})
    text = replaced(text, old, with);
  text = tightened(text, R"(\(\s*([^\)]*?)\s*\))", '(', ')');
  text = tightened(text, R"(\[\s*([^\]]*?)\s*\])", '[', ']');
  text = tightened(text, R"({\s*([^}]*?)\s*})", '{', '}');
  text = tightened(text, R"(\"\s*([^\"]*?)\s*\")", '"', '"');
  text = tightened(text, R"('\s*([^']*?)\s*')", '\'', '\'');
  for (const auto& [old, with] :
       std::initializer_list<std::pair<const char*, const char*>>{{"= = = =", "===="},
                                                                  {"= = =", "==="},
                                                                  {"= =", "=="},
                                                                  {" ° ", "°"},
                                                                  {" \n", "\n"},
                                                                  {"\n ", "\n"},
                                                                  {" N ", " 1 "},
                                                                  {" 's", "'s"}})
    text = replaced(text, old, with);
  row.set("text", std::move(text));
  return row;
}

using DocumentFunction = Result<Json> (*)(Json);
const std::map<std::string_view, DocumentFunction>& functions() {
  static const std::map<std::string_view, DocumentFunction> all = {{"arc", arc},
                                                                   {"boolq", boolq},
                                                                   {"hellaswag", hellaswag},
                                                                   {"mmlu", mmlu},
                                                                   {"wikitext", wikitext}};
  return all;
}

}  // namespace

const std::vector<std::string_view>& document_functions() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const auto& [name, function] : functions()) out.push_back(name);
    return out;
  }();
  return names;
}

const std::vector<std::string_view>& result_functions() {
  static const std::vector<std::string_view> names = {"agieval_choices", "agieval_math",
                                                      "wikitext"};
  return names;
}

Result<Json> process_document(std::string_view function, Json row) {
  if (function.empty()) return row;
  return functions().at(function)(std::move(row));
}

}  // namespace troupe::launch::evaluation
