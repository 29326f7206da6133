#include "engine/data/layouts/layout.h"

#include <algorithm>
#include <array>

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

Layout for_sft(const Columns& has) {
  if (has("input_ids")) return Layout::token_ids;
  if (has("messages") || has("conversations")) return Layout::messages;
  if (has("prompt") && (has("completion") || has("response") || has("answer")))
    return Layout::prompt_completion;
  if (has("instruction") && has.first({"output", "completion", "response"})) return Layout::alpaca;
  if ((has("question") && has("answer")) || (has("problem") && has("solution")))
    return Layout::question_answer;
  return has("text") ? Layout::text : Layout::automatic;
}

Layout for_pairs(const Columns& has) {
  if (has("chosen_input_ids") && has("rejected_input_ids")) return Layout::token_ids;
  return has("chosen") && has("rejected") ? Layout::pairwise : Layout::automatic;
}

Layout for_unpaired(const Columns& has) {
  if (has("chosen") && has("rejected")) return Layout::pairwise;
  if (!has("label") && !has("kto_tag")) return Layout::automatic;
  const auto found = for_sft(has);
  return found == Layout::question_answer || found == Layout::text ? Layout::automatic : found;
}

Layout for_steps(const Columns& has) {
  const auto* label = has.find("label");
  if (label && label->find("steps") && has("question")) return Layout::prm800k;
  const bool labelled = has("labels") || has("error_steps") || has.has_key("mistake_index");
  if (has.first({"completions", "steps"}) && labelled) return Layout::steps;
  return has("input") && (has("value") || (label && label->is_string())) ? Layout::placeholders
                                                                         : Layout::automatic;
}

Layout for_prompts(const Columns& has) {
  for (const auto* key :
       {"prompt", "question", "problem", "instruction", "messages", "conversations"})
    if (has(key)) return Layout::prompt_answer;
  return has("input_ids") ? Layout::token_ids : Layout::automatic;
}

Layout layout_for(Purpose purpose, const Columns& has) {
  switch (purpose) {
    case Purpose::sft:
      return for_sft(has);
    case Purpose::pairs:
      return for_pairs(has);
    case Purpose::unpaired:
      return for_unpaired(has);
    case Purpose::steps:
      return for_steps(has);
    case Purpose::prompts:
      return for_prompts(has);
  }
  return Layout::automatic;
}

std::vector<Layout> layouts_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::sft:
      return {Layout::token_ids,       Layout::messages, Layout::prompt_completion,
              Layout::question_answer, Layout::alpaca,   Layout::text};
    case Purpose::pairs:
      return {Layout::token_ids, Layout::pairwise};
    case Purpose::unpaired:
      return {Layout::token_ids, Layout::messages, Layout::prompt_completion, Layout::alpaca,
              Layout::pairwise};
    case Purpose::steps:
      return {Layout::steps, Layout::placeholders, Layout::prm800k};
    case Purpose::prompts:
      return {Layout::token_ids, Layout::prompt_answer};
  }
  return {};
}

std::string known_layouts(Purpose purpose) {
  switch (purpose) {
    case Purpose::sft:
      return "input_ids (labels) | messages or conversations | prompt and completion, response or "
             "answer | instruction and output, completion or response (input, system, history) | "
             "question, answer | problem, solution | text";
    case Purpose::pairs:
      return "chosen, rejected (with prompt, instruction, conversations, or whole dialogues) | "
             "chosen_input_ids, chosen_labels, "
             "rejected_input_ids, "
             "rejected_labels";
    case Purpose::unpaired:
      return "label or kto_tag (true: a good answer) with prompt, completion | messages or "
             "conversations | instruction, output | "
             "input_ids, "
             "labels; or chosen, rejected (each pair is two answers)";
    case Purpose::steps:
      return "prompt, completions or steps, with labels (one a step), mistake_index or error_steps "
             "| input, value (one reward token a "
             "placeholder) or label (the text with reward tokens in it) | question.problem, "
             "label.steps (PRM800K)";
    case Purpose::prompts:
      return "prompt, question, problem, instruction or messages (with answer, ground_truth or "
             "reward_model.ground_truth) | input_ids";
  }
  return "";
}

std::string keys_of(const Json& row) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : row.object()) keys.push_back(quote(key, 40));
  if (keys.size() > 20) {
    keys.resize(20);
    keys.push_back("...");
  }
  return keys.empty() ? "none" : join(keys, ", ");
}

}  // namespace

Result<> check_layout(Layout layout, Purpose purpose) {
  const auto fitting = layouts_of(purpose);
  if (layout == Layout::automatic ||
      std::find(fitting.begin(), fitting.end(), layout) != fitting.end())
    return {};
  std::vector<std::string> names{"auto"};
  for (const auto each : fitting) names.emplace_back(name_of(each));
  return fail(Errc::usage, cat("data.layout: this algorithm expects one of ", join(names, ", "),
                               ", found ", name_of(layout)));
}

bool takes_system(Layout layout) {
  switch (layout) {
    case Layout::messages:
    case Layout::prompt_completion:
    case Layout::question_answer:
    case Layout::alpaca:
    case Layout::pairwise:
    case Layout::prompt_answer:
      return true;
    default:
      return false;
  }
}

Result<Layout> detect_layout(const Row& row, const LayoutOptions& options) {
  const Columns has(row.value, options.columns, options.tags);
  const auto found = layout_for(options.purpose, has);
  if (found != Layout::automatic) return found;
  for (const auto& [name, column] : options.columns)
    if (!column.empty() && !has(name))
      return fail(Errc::usage, cat(row.where(), ": data.columns maps ", name, " to ", quote(column),
                                   ", which this row lacks. It has: ", keys_of(row.value)));
  return fail(Errc::bad_input,
              cat(row.where(), ": the row's columns fit no known layout. Known: ",
                  known_layouts(options.purpose), ". Found: ", keys_of(row.value),
                  ". Map columns to these names, as in data.columns.prompt=question"));
}

}  // namespace troupe::engine::data
