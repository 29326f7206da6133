// The rows of process reward models in the ways that they are published, each to its steps and
// labels.
#include "engine/base/text.h"
#include "engine/data/layouts/steps.h"

namespace troupe::engine::data {
namespace {

tl::unexpected<Error> bad(std::string what) {
  return fail(Errc::bad_input, std::move(what));
}

Result<const Json::Array*> list(const Columns& row, const std::string& name, const char* of) {
  const auto* value = row.find(name);
  if (!value || !value->is_array())
    return bad(cat("expected a list of ", of, " under ", quote(row.file_name(name)), ", found ",
                   value ? value->type_name() : "nothing"));
  if (value->array().empty())
    return bad(cat(quote(row.file_name(name)), " is empty: not one step to judge"));
  return &value->array();
}

Result<std::vector<std::string>> texts(const Columns& row, const std::string& name,
                                       const char* of) {
  const auto items = list(row, name, of);
  RETURN_IF_ERROR(items);
  std::vector<std::string> out;
  for (const auto& item : **items) {
    if (!item.is_string())
      return bad(cat(quote(row.file_name(name)), ", item ", out.size(), ": expected text, found ",
                     item.type_name()));
    out.push_back(item.string());
  }
  return out;
}

const char* given(const Columns& row, std::initializer_list<const char*> names) {
  for (const auto* name : names)
    if (row(name)) return name;
  return *names.begin();
}

Result<std::vector<std::int32_t>> listed_classes(const Columns& row, std::size_t steps,
                                                 const std::string& steps_name) {
  const auto labels = list(row, "labels", "labels, one a step,");
  RETURN_IF_ERROR(labels);
  std::vector<std::int32_t> out;
  for (const auto& label : **labels) {
    const bool fits = label.is_bool() ||
                      (label.is_integer() && label.integer() >= 0 && label.integer() < (1 << 16));
    if (!fits)
      return bad(cat(quote(row.file_name("labels")), ", item ", out.size(),
                     ": expected true, false or a class from 0, found ",
                     label.is_number() ? label.dump() : std::string(label.type_name())));
    out.push_back(label.is_bool() ? label.boolean() : static_cast<std::int32_t>(label.integer()));
  }
  if (out.size() != steps)
    return bad(cat("expected as many labels as steps, found ", out.size(), " under ",
                   quote(row.file_name("labels")), " and ", steps, " under ",
                   quote(row.file_name(steps_name))));
  return out;
}

Result<std::vector<std::int32_t>> classes_to_first_mistake(const Columns& row, std::size_t steps) {
  std::vector<std::int32_t> out(steps, 1);
  const auto* first = row.find("mistake_index");
  if (!first || *first == Json(-1)) return out;
  if (!first->is_integer() || first->integer() < 0 ||
      first->integer() >= static_cast<std::int64_t>(steps))
    return bad(cat("expected the number of a step from 0 to ", steps - 1, ", or null, under ",
                   quote(row.file_name("mistake_index")), ", found ",
                   first->is_number() ? first->dump() : std::string(first->type_name())));
  const auto at = static_cast<std::size_t>(first->integer());
  out[at] = 0;
  for (auto later = at + 1; later < steps; ++later) out[later] = -1;
  return out;
}

Result<std::vector<std::int32_t>> classes_of_errors(const Columns& row, std::size_t steps) {
  std::vector<std::int32_t> out(steps, 1);
  const auto* errors = row.find("error_steps");
  if (!errors->is_array())
    return bad(cat("expected a list under ", quote(row.file_name("error_steps")), ", found ",
                   errors->type_name()));
  for (const auto& item : errors->array()) {
    if (!item.is_integer() || item.integer() < 1 ||
        item.integer() > static_cast<std::int64_t>(steps))
      return bad(cat(quote(row.file_name("error_steps")), ": expected numbers of steps from 1 to ",
                     steps, ", found ",
                     item.is_number() ? item.dump() : std::string(item.type_name())));
    out[static_cast<std::size_t>(item.integer()) - 1] = 0;
  }
  return out;
}

// What PRM800K's step was gone on with, its class, and whether the solution ends here. Nullopt: it
// has no text.
struct Prm800kStep {
  std::string text;
  std::int32_t label = -1;
  bool last = false;
};
Result<std::optional<Prm800kStep>> prm800k_step(const Json& step) {
  const auto *all = step.find("completions"), *chosen = step.find("chosen_completion"),
             *human = step.find("human_completion");
  const auto count = all && all->is_array() ? all->array().size() : 0;
  const Json* used = nullptr;
  bool last = false;
  if (chosen && chosen->is_integer()) {
    if (chosen->integer() < 0 || chosen->integer() >= static_cast<std::int64_t>(count))
      return bad(cat("\"chosen_completion\": expected a number from 0 to ",
                     static_cast<std::int64_t>(count) - 1, ", found ", chosen->integer()));
    used = &all->array()[static_cast<std::size_t>(chosen->integer())];
  } else if (human && !human->is_null()) {
    used = human;
  } else if (count > 0) {
    used = &all->array()[0], last = true;
  }
  if (!used) return std::nullopt;
  const auto *text = used->find("text"), *rating = used->find("rating");
  if (!text || !text->is_string()) return bad("a completion of \"label.steps\" has no text");
  const bool rated =
      rating && rating->is_integer() && rating->integer() >= -1 && rating->integer() <= 1;
  return Prm800kStep{text->string(),
                     rated           ? (rating->integer() >= 0 ? 1 : 0)
                     : used == human ? 1
                                     : -1,
                     last};
}

}  // namespace

Result<Sample> step_sample(const Columns& row, const LayoutOptions&) {
  auto prompt = row.string(given(row, {"prompt", "question", "problem", "input"}));
  RETURN_IF_ERROR(prompt);
  const auto* name = given(row, {"completions", "steps"});
  auto steps = texts(row, name, "texts, one a step,");
  RETURN_IF_ERROR(steps);
  auto classes = row("error_steps") ? classes_of_errors(row, steps->size())
                 : !row("labels") && row.has_key("mistake_index")
                     ? classes_to_first_mistake(row, steps->size())
                     : listed_classes(row, steps->size(), name);
  RETURN_IF_ERROR(classes);
  return Sample{.prompt = Json(std::move(*prompt)),
                .judged = StepLabels{.steps = std::move(*steps),
                                     .classes = std::move(*classes),
                                     .values = {},
                                     .labelled = {}}};
}

Result<Sample> placeholder_sample(const Columns& row, const LayoutOptions&) {
  auto input = row.string("input");
  RETURN_IF_ERROR(input);
  StepLabels judged;
  if (row("value") || !row("label")) {
    auto values = texts(row, "value", "reward tokens, one a placeholder,");
    RETURN_IF_ERROR(values);
    judged.values = std::move(*values);
  } else {
    auto label = row.string("label");
    RETURN_IF_ERROR(label);
    judged.labelled = std::move(*label);
  }
  return Sample{.prompt = Json(std::move(*input)), .judged = std::move(judged)};
}

Result<Sample> prm800k_sample(const Columns& row, const LayoutOptions&) {
  const auto *question = row.find("question"), *label = row.find("label");
  const auto* problem = question ? question->find("problem") : nullptr;
  const auto* steps = label ? label->find("steps") : nullptr;
  if (!problem || !problem->is_string() || !steps || !steps->is_array())
    return bad(
        "expected a text under \"question.problem\" and a list under \"label.steps\", as PRM800K "
        "has them");
  StepLabels judged;
  for (const auto& item : steps->array()) {
    auto step = prm800k_step(item);
    RETURN_IF_ERROR(step);
    if (!*step) break;
    judged.steps.push_back(std::move((*step)->text)), judged.classes.push_back((*step)->label);
    if ((*step)->last) break;
  }
  if (judged.steps.empty()) return bad("\"label.steps\" is empty: not one step to judge");
  return Sample{.prompt = *problem, .judged = std::move(judged)};
}

}  // namespace troupe::engine::data
