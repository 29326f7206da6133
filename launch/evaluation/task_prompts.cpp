#include "launch/evaluation/task_prompts.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation {
namespace {

// requires_delimiter() of lm_eval/api/utils.py.
bool needs_delimiter(std::string_view before, std::string_view after) {
  return !before.empty() && !ends_with_space(before) && !begins_with_space(after);
}

// maybe_delimit() of lm_eval/api/utils.py.
std::string joined(const std::string& before, const std::string& after,
                   std::string_view delimiter) {
  if (before.empty() || after.empty()) return before + after;
  return needs_delimiter(before, after) ? cat(before, delimiter, after) : before + after;
}

std::set<std::string> columns_of(const std::vector<Json>& rows) {
  std::set<std::string> out;
  if (!rows.empty())
    for (const auto& [name, value] : rows.front().object()) out.insert(name);
  return out;
}

/// multiturn_to_singleturn() of lm_eval/api/utils.py: one message of the user, besides the system's
/// and the beginning of the answer.
std::vector<PromptTurn> one_turn(std::vector<PromptTurn> parts) {
  std::vector<PromptTurn> out;
  std::size_t first = 0, last = parts.size();
  if (parts.front().role == "system") out.push_back(std::move(parts[first++]));
  if (parts.back().role == "assistant") --last;
  PromptTurn user{"user", "", ""};
  for (std::size_t i = first; i < last; ++i)
    user.content += parts[i].content + (i + 1 < last ? parts[i].delimiter : "");
  out.push_back(std::move(user));
  if (last < parts.size()) out.push_back(std::move(parts[last]));
  return out;
}

/// apply_chat_template() of lm_eval/models/huggingface.py: a template that refuses a system message
/// gets none.
Result<std::string> render(const std::vector<PromptTurn>& parts, const RenderTurns& chat) {
  Json::Array messages;
  for (const PromptTurn& part : parts)
    messages.push_back(Json::Object{{"role", part.role}, {"content", part.content}});
  auto out = chat(Json(messages));
  if (out || parts.front().role != "system") return out;
  messages.erase(messages.begin());
  return chat(Json(std::move(messages)));
}

}  // namespace

Result<TaskPrompts> TaskPrompts::create(const TaskConfig& task, const TaskRows& rows,
                                        PromptSettings settings) {
  const auto columns = columns_of(rows.items);
  const auto compile = [&](const Json& own, const Json& other, std::string_view key) {
    return RowField::compile(own.is_null() ? other : own, columns,
                             cat(task.where, ": ", task.name, ": ", key));
  };
  const auto fields = [&](const Json& text, const Json& target,
                          const Json& choice) -> Result<Fields> {
    auto texts = compile(text, task.text, "doc_to_text");
    RETURN_IF_ERROR(texts);
    auto targets = compile(target, task.target, "doc_to_target");
    RETURN_IF_ERROR(targets);
    Fields out{std::move(*texts), std::move(*targets), std::nullopt};
    if (choice.is_null() && task.choice.is_null()) return out;
    auto choices = compile(choice, task.choice, "doc_to_choice");
    RETURN_IF_ERROR(choices);
    out.choice = std::move(*choices);
    return out;
  };
  auto items = fields({}, {}, {});
  RETURN_IF_ERROR(items);
  auto examples = fields(task.fewshot.text, task.fewshot.target, task.fewshot.choice);
  RETURN_IF_ERROR(examples);
  TaskPrompts out(task, rows, std::move(settings), std::move(*items), std::move(*examples));
  out.num_fewshot_ = task.num_fewshot.value_or(0);
  if (out.settings_.num_fewshot && task.num_fewshot != 0)
    out.num_fewshot_ = *out.settings_.num_fewshot;
  return out;
}

/// FirstNSampler and ContextSampler. The item itself is left out where its split is that of the
/// examples; so it is, as in the reference, where neither is named.
Result<std::vector<const Json*>> TaskPrompts::draw_examples(const Json& row) {
  const auto& all = rows_->examples;
  const auto wanted = static_cast<std::size_t>(num_fewshot_);
  const bool leave_out = task_->fewshot.split == task_->test_split;
  const bool first = task_->fewshot.sampler == "first_n";
  std::vector<const Json*> pool;
  for (const Json& each : all)
    if (!first || !leave_out || each != row) pool.push_back(&each);
  const std::size_t drawn = wanted + (!first && leave_out ? 1 : 0);
  if (pool.size() < drawn)
    return fail(Errc::bad_input, cat(task_->where, ": ", task_->name, ": ", drawn,
                                     " examples are needed and there are ", pool.size(),
                                     "; lower --num-fewshot or give the file of the examples"));
  if (first) return std::vector(pool.begin(), pool.begin() + num_fewshot_);
  const auto sample = [&](std::size_t count) {
    std::vector<const Json*> out;
    for (const std::size_t at : random_.sample(pool.size(), count)) out.push_back(pool[at]);
    return out;
  };
  auto out = sample(drawn);
  if (!leave_out) return out;
  const auto is_row = [&](const Json* each) { return *each == row; };
  std::erase_if(out, is_row);
  if (out.size() < wanted) {  // it was drawn more than once
    std::erase_if(pool, is_row);
    if (pool.size() < wanted)
      return fail(Errc::bad_input, cat(task_->name, ": too few examples besides the item"));
    out = sample(wanted);
  }
  out.resize(wanted);
  return out;
}

Result<std::string> TaskPrompts::rendered(const std::string& field, const Json& row,
                                          const std::string& key) const {
  if (const Json* column = row.find(field); column != nullptr && column->is_string())
    return column->string();
  const auto made = DocTemplate::compile(field, cat(task_->where, ": ", key));
  RETURN_IF_ERROR(made);
  return made->render(row);
}

/// An example with its answer: build_qa_turn().
Result<> TaskPrompts::add_example(const Json& row, std::vector<PromptTurn>& out) const {
  auto question = examples_.text.text(row);
  RETURN_IF_ERROR(question);
  auto target = examples_.target.target(row, examples_.choice.has_value());
  RETURN_IF_ERROR(target);
  std::string prefix;
  if (task_->gen_prefix) {
    auto made = rendered(*task_->gen_prefix, row, "gen_prefix");
    RETURN_IF_ERROR(made);
    prefix = std::move(*made);
  }
  if (target->is_integer() && examples_.choice) {
    auto choices = examples_.choice->choices(row);
    RETURN_IF_ERROR(choices);
    const std::int64_t at = target->integer();
    if (at < 0 || at >= std::ssize(*choices))
      return fail(Errc::bad_input, cat(task_->name, ": an example's answer is choice ", at, " of ",
                                       choices->size()));
    target = Json((*choices)[static_cast<std::size_t>(at)]);
  } else if (target->is_array() && !target->array().empty()) {
    target = Json(target->array().front());
  }
  if (!target->is_string())
    return fail(Errc::bad_input, cat(task_->where, ": ", task_->name,
                                     ": an example's answer is no text: ", quote(target->dump())));
  const std::string delimiter = task_->fewshot.target_delimiter.value_or(task_->target_delimiter);
  const bool delimited =
      prefix.empty() ? !target->string().empty() : needs_delimiter(*question, prefix);
  out.push_back({"user", std::move(*question), delimited ? delimiter : ""});
  if (!target->string().empty())
    out.push_back({"assistant", joined(prefix, target->string(), " "),
                   task_->fewshot.fewshot_delimiter.value_or(task_->fewshot_delimiter)});
  else if (!prefix.empty())
    out.push_back({"assistant", prefix, ""});
  return {};
}

/// The parts of a prompt in their order: a system message, examples, the item, and the beginning of
/// its answer.
Result<std::vector<PromptTurn>> TaskPrompts::turns(const Json& row) {
  std::string description;
  if (!task_->description.empty()) {
    auto made = rendered(task_->description, row, "description");
    RETURN_IF_ERROR(made);
    description = std::move(*made);
  }
  std::vector<PromptTurn> out;
  std::string system = joined(settings_.system_instruction, description, task_->fewshot_delimiter);
  if (!system.empty()) out.push_back({"system", std::move(system), ""});
  if (num_fewshot_ > 0) {
    const auto drawn = draw_examples(row);
    RETURN_IF_ERROR(drawn);
    for (const Json* each : *drawn) RETURN_IF_ERROR(add_example(*each, out));
  }
  auto question = items_.text.text(row);
  RETURN_IF_ERROR(question);
  out.push_back({"user", std::move(*question), ""});
  if (!task_->gen_prefix) return out;
  auto prefix = rendered(*task_->gen_prefix, row, "gen_prefix");
  RETURN_IF_ERROR(prefix);
  if (prefix->empty()) return out;
  if (needs_delimiter(out.back().content, *prefix)) out.back().delimiter = task_->target_delimiter;
  out.push_back({"assistant", std::move(*prefix), ""});
  return out;
}

Result<std::string> TaskPrompts::context(const Json& row) {
  auto parts = turns(row);
  RETURN_IF_ERROR(parts);
  if (settings_.render) {
    if (!settings_.examples_as_turns) *parts = one_turn(std::move(*parts));
    return render(*parts, settings_.render);
  }
  std::string out;
  for (const PromptTurn& part : *parts) out += part.content + part.delimiter;
  return out;
}

Result<> TaskPrompts::add_continuations(const Json& row, TaskItem& item) const {
  if (task_->output_type == OutputType::multiple_choice) {
    auto choices = items_.choice->choices(row);
    RETURN_IF_ERROR(choices);
    item.choices = std::move(*choices);
    const bool twice = std::ranges::find(task_->metrics, "acc_mutual_info", &MetricConfig::name) !=
                       task_->metrics.end();
    // A template has its own delimiter before an answer.
    const bool prefixed =
        task_->gen_prefix && !task_->gen_prefix->empty() && !ends_with_space(*task_->gen_prefix);
    const std::string delimiter = settings_.render && !prefixed ? "" : task_->target_delimiter;
    for (int round = 0; round < (twice ? 2 : 1); ++round)
      for (const std::string& choice : item.choices)
        item.continuations.push_back(delimiter + choice);
  } else if (task_->output_type != OutputType::generate_until) {
    if (!item.target.is_string())
      return fail(Errc::bad_input,
                  cat("doc_to_target: expected a text, found ", item.target.type_name()));
    item.continuations.push_back(item.target.string());
  } else if (items_.choice) {
    auto choices = items_.choice->choices(row);
    RETURN_IF_ERROR(choices);
    item.choices = std::move(*choices);
  }
  return {};
}

Result<TaskItem> TaskPrompts::item(std::int64_t number) {
  const Json& row = rows_->items[static_cast<std::size_t>(number)];
  TaskItem out{.number = number};
  const auto build = [&]() -> Result<> {
    if (task_->output_type != OutputType::loglikelihood_rolling) {
      auto text = context(row);
      RETURN_IF_ERROR(text);
      out.context = std::move(*text);
    }
    auto target = items_.target.target(row, items_.choice.has_value());
    RETURN_IF_ERROR(target);
    out.target = std::move(*target);
    return add_continuations(row, out);
  };
  if (const auto built = build(); !built)
    return fail(built.error().code, cat(task_->name, ", item ", number, ": ", built.error().what));
  return out;
}

}  // namespace troupe::launch::evaluation
