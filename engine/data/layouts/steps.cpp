#include "engine/data/layouts/steps.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

using Ids = std::vector<std::int32_t>;

Result<const Json::Array*> list(const Columns& row, const std::string& name, const char* of) {
  const auto* value = row.find(name);
  if (!value || !value->is_array())
    return bad_row(cat("expected a list of ", of, " under ", quote(row.file_name(name)), ", found ",
                       value ? value->type_name() : "nothing"));
  if (value->array().empty())
    return bad_row(cat(quote(row.file_name(name)), " is empty: it has no step"));
  return &value->array();
}

Result<std::vector<std::string>> texts(const Columns& row, const std::string& name,
                                       const char* of) {
  const auto items = list(row, name, of);
  RETURN_IF_ERROR(items);
  std::vector<std::string> out;
  for (const auto& item : **items) {
    if (!item.is_string())
      return bad_row(cat(quote(row.file_name(name)), ", item ", out.size(),
                         ": expected text, found ", item.type_name()));
    out.push_back(item.string());
  }
  return out;
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
      return bad_row(cat(quote(row.file_name("labels")), ", item ", out.size(),
                         ": expected true, false or a class from 0, found ",
                         label.is_number() ? label.dump() : std::string(label.type_name())));
    out.push_back(label.is_bool() ? label.boolean() : static_cast<std::int32_t>(label.integer()));
  }
  if (out.size() != steps)
    return bad_row(cat("expected as many labels as steps, found ", out.size(), " under ",
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
    return bad_row(cat("expected the number of a step from 0 to ", steps - 1, ", or null, under ",
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
    return bad_row(cat("expected a list under ", quote(row.file_name("error_steps")), ", found ",
                       errors->type_name()));
  for (const auto& item : errors->array()) {
    if (!item.is_integer() || item.integer() < 1 ||
        item.integer() > static_cast<std::int64_t>(steps))
      return bad_row(cat(quote(row.file_name("error_steps")),
                         ": expected numbers of steps from 1 to ", steps, ", found ",
                         item.is_number() ? item.dump() : std::string(item.type_name())));
    out[static_cast<std::size_t>(item.integer()) - 1] = 0;
  }
  return out;
}

// Counts the members of `object` other than `read` as not read.
void mark_others(const Columns& row, const Json& object, const std::string& path,
                 std::initializer_list<std::string_view> read) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.object())
    if (!value.is_null() && std::ranges::find(read, name) == read.end())
      row.mark_unread(cat(path, '.', name));
}

// The completion with which a step of PRM800K was continued, its class, and whether the solution
// ends here. nullopt if it has no text.
struct Prm800kStep {
  std::string text;
  std::int32_t label = -1;
  bool last = false;
};
Result<std::optional<Prm800kStep>> prm800k_step(const Columns& row, const Json& step) {
  const auto *all = step.find("completions"), *chosen = step.find("chosen_completion"),
             *human = step.find("human_completion");
  const auto count = all && all->is_array() ? all->array().size() : 0;
  const Json* used = nullptr;
  bool last = false;
  if (chosen && !chosen->is_null()) {
    if (!chosen->is_integer() || chosen->integer() < 0 ||
        chosen->integer() >= static_cast<std::int64_t>(count))
      return bad_row(
          cat("\"chosen_completion\": expected null or the number, from 0, of one of the ", count,
              " entries of \"completions\", found ", quote(chosen->dump(), 24)));
    used = &all->array()[static_cast<std::size_t>(chosen->integer())];
  } else if (human && !human->is_null()) {
    used = human;
  } else if (count > 0) {
    used = &all->array()[0];
    last = true;
  }
  mark_others(row, step, "label.steps", {"completions", "chosen_completion", "human_completion"});
  if (!used) return std::nullopt;
  mark_others(row, *used,
              used == human ? "label.steps.human_completion" : "label.steps.completions",
              {"text", "rating"});
  if (used == human ? count > 0 : count > 1) row.mark_unread("label.steps.completions");
  if (human && used != human && !human->is_null()) row.mark_unread("label.steps.human_completion");
  const auto *text = used->find("text"), *rating = used->find("rating");
  if (!text || !text->is_string()) return bad_row("a completion of \"label.steps\" has no text");
  const bool rated =
      rating && rating->is_integer() && rating->integer() >= -1 && rating->integer() <= 1;
  return Prm800kStep{text->string(),
                     rated           ? (rating->integer() >= 0 ? 1 : 0)
                     : used == human ? 1
                                     : -1,
                     last};
}

Result<std::int32_t> one_token(const std::string& text, const std::string& key,
                               const TextEncoder& encoder) {
  const auto ids = encoder.encode(text, false);
  RETURN_IF_ERROR(ids);
  if (ids->size() == 1 && (encoder.vocabulary() == 0 || ids->front() < encoder.vocabulary()))
    return ids->front();
  return fail(
      Errc::usage,
      cat(key, ": expected a text that is exactly one token of the model, found ", quote(text),
          ", which is ", ids->size(),
          ids->size() == 1 ? " token that the model's vocabulary lacks" : " tokens",
          "; choose another (`troupe tokenize` shows the tokens of a text). troupe has no command "
          "that adds a token: add it with transformers (tokenizer.add_tokens, "
          "model.resize_token_embeddings, save_pretrained) and train that model"));
}

Result<std::int32_t> class_of(const std::string& value, std::size_t item,
                              const StepTokens& tokens) {
  const auto found = std::find(tokens.reward_texts.begin(), tokens.reward_texts.end(), value);
  if (found != tokens.reward_texts.end())
    return static_cast<std::int32_t>(found - tokens.reward_texts.begin());
  std::vector<std::string> known;
  for (const auto& text : tokens.reward_texts) known.push_back(quote(text));
  return bad_row(cat("\"value\", item ", item, ": expected one of prm.reward_tokens (",
                     join(known, ", "), "), found ", quote(value)));
}

Result<StepExample> with_separators(const Sample& sample, const TextEncoder& encoder,
                                    const StepOptions& options) {
  if (options.tokens)
    return fail(Errc::usage,
                "the rows have steps and labels (prompt, completions, labels), and prm.kind is "
                "placeholder, which expects input and value; "
                "choose prm.kind: token_class");
  const auto& labels = *sample.step_labels;
  auto row = tokenize_steps(sample.prompt.string(), labels.steps, options.separator, encoder);
  RETURN_IF_ERROR(row);
  StepExample out{.ids = std::move(row->ids)};
  out.classes.assign(out.ids.size(), -1);
  for (std::size_t k = 0; k < row->ends.size(); ++k) {
    if (labels.classes[k] >= options.classes)
      return bad_row(cat("\"labels\", item ", k, ": expected a class from 0 to ",
                         options.classes - 1, ", found ", labels.classes[k]));
    if (!options.last_step_only || k + 1 == row->ends.size())
      out.classes[static_cast<std::size_t>(row->ends[k])] = labels.classes[k];
  }
  return out;
}

// Reads the reward tokens from Math-Shepherd's label: the text with a reward token in place of each
// placeholder.
Result<std::vector<std::string>> reward_tokens(const Sample& sample, const StepTokens& tokens) {
  if (sample.step_labels->labelled.empty()) return sample.step_labels->values;
  std::string_view text = sample.prompt.string(), label = sample.step_labels->labelled;
  std::vector<std::string> out;
  for (;;) {
    const auto mark = text.find(tokens.placeholder_text);
    const auto piece = text.substr(0, mark);
    if (!label.starts_with(piece) || (mark == std::string_view::npos && label != piece))
      return bad_row(
          cat("\"label\": expected the text of \"input\" with a reward token in the place of each ",
              quote(tokens.placeholder_text), "; they differ behind reward token ", out.size()));
    if (mark == std::string_view::npos) return out;
    text.remove_prefix(mark + tokens.placeholder_text.size());
    label.remove_prefix(piece.size());
    const std::string* found = nullptr;
    for (const auto& reward : tokens.reward_texts)
      if (label.starts_with(reward) && (!found || reward.size() > found->size())) found = &reward;
    if (!found)
      return bad_row(cat("\"label\", step ", out.size(),
                         ": expected one of prm.reward_tokens, found ",
                         quote(label.substr(0, 12))));
    out.push_back(*found);
    label.remove_prefix(found->size());
  }
}

Result<StepExample> with_placeholders(const Sample& sample, const TextEncoder& encoder,
                                      const StepOptions& options) {
  if (!options.tokens)
    return fail(Errc::usage,
                "the rows have placeholders (input, value), and prm.kind is token_class, which "
                "expects prompt, completions and labels; "
                "choose prm.kind: placeholder");
  auto read = reward_tokens(sample, *options.tokens);
  RETURN_IF_ERROR(read);
  const auto& values = *read;
  auto ids = encoder.encode(sample.prompt.string(), true);
  RETURN_IF_ERROR(ids);
  StepExample out{.ids = std::move(*ids)};
  out.classes.assign(out.ids.size(), -1);
  std::size_t steps = 0;
  for (std::size_t t = 0; t < out.ids.size(); ++t) {
    if (out.ids[t] != options.tokens->placeholder) continue;
    if (steps < values.size()) {
      const auto found = class_of(values[steps], steps, *options.tokens);
      RETURN_IF_ERROR(found);
      if (!options.last_step_only || steps + 1 == values.size()) out.classes[t] = *found;
    }
    ++steps;
  }
  if (steps != values.size())
    return bad_row(cat("\"input\": expected one placeholder ",
                       quote(options.tokens->placeholder_text), " (token ",
                       options.tokens->placeholder, ") for each of the ", values.size(),
                       " under \"value\", found ", steps));
  return out;
}

}  // namespace

Result<Sample> step_sample(const Columns& row, const LayoutOptions&) {
  const auto* of_prompt = row.first_name({"prompt", "question", "problem", "input"});
  if (!row(of_prompt))
    return bad_row(
        "expected text under \"prompt\", \"question\", \"problem\" or \"input\", found nothing");
  auto prompt = row.string(of_prompt);
  RETURN_IF_ERROR(prompt);
  const auto* name = row.first_name({"completions", "steps"});
  auto steps = texts(row, name, "texts, one a step,");
  RETURN_IF_ERROR(steps);
  auto classes = row("error_steps") ? classes_of_errors(row, steps->size())
                 : !row("labels") && row.has_key("mistake_index")
                     ? classes_to_first_mistake(row, steps->size())
                     : listed_classes(row, steps->size(), name);
  RETURN_IF_ERROR(classes);
  return Sample{.prompt = Json(std::move(*prompt)),
                .step_labels = StepLabels{.steps = std::move(*steps),
                                          .classes = std::move(*classes),
                                          .values = {},
                                          .labelled = {}}};
}

Result<Sample> placeholder_sample(const Columns& row, const LayoutOptions&) {
  auto input = row.string("input");
  RETURN_IF_ERROR(input);
  StepLabels labels;
  if (row("value") || !row("label")) {
    auto values = texts(row, "value", "reward tokens, one a placeholder,");
    RETURN_IF_ERROR(values);
    labels.values = std::move(*values);
  } else {
    auto label = row.string("label");
    RETURN_IF_ERROR(label);
    labels.labelled = std::move(*label);
  }
  return Sample{.prompt = Json(std::move(*input)), .step_labels = std::move(labels)};
}

Result<Sample> prm800k_sample(const Columns& row, const LayoutOptions&) {
  const auto *question = row.find("question"), *label = row.find("label");
  const auto* problem = question ? question->find("problem") : nullptr;
  const auto* steps = label ? label->find("steps") : nullptr;
  if (!problem || !problem->is_string() || !steps || !steps->is_array())
    return bad_row(
        "expected a text under \"question.problem\" and a list under \"label.steps\", as PRM800K "
        "has them");
  mark_others(row, *question, row.file_name("question"), {"problem"});
  mark_others(row, *label, row.file_name("label"), {"steps"});
  StepLabels labels;
  for (const auto& item : steps->array()) {
    auto step = prm800k_step(row, item);
    RETURN_IF_ERROR(step);
    if (!*step) break;
    labels.steps.push_back(std::move((*step)->text));
    labels.classes.push_back((*step)->label);
    if ((*step)->last) break;
  }
  if (labels.steps.empty()) return bad_row("\"label.steps\" is empty: it has no step");
  if (labels.steps.size() < steps->array().size()) row.mark_unread("label.steps");
  return Sample{.prompt = *problem, .step_labels = std::move(labels)};
}

Result<StepTokens> find_step_tokens(const std::string& placeholder,
                                    const std::vector<std::string>& reward_tokens,
                                    const TextEncoder& encoder) {
  if (reward_tokens.size() < 2)
    return fail(
        Errc::usage,
        cat("prm.reward_tokens: expected two or more (the first means a right step), found ",
            reward_tokens.size()));
  StepTokens out{.placeholder_text = placeholder, .reward_texts = reward_tokens};
  const auto found = one_token(placeholder, "prm.placeholder", encoder);
  RETURN_IF_ERROR(found);
  out.placeholder = *found;
  for (const auto& text : reward_tokens) {
    const auto id = one_token(text, "prm.reward_tokens", encoder);
    RETURN_IF_ERROR(id);
    out.reward_ids.push_back(*id);
  }
  return out;
}

Result<StepTokenRow> tokenize_steps(std::string_view prompt, const std::vector<std::string>& steps,
                                    const std::string& separator, const TextEncoder& encoder) {
  auto ids = encoder.encode(prompt, true);
  const auto behind = encoder.encode(separator, false);
  RETURN_IF_ERROR(ids);
  RETURN_IF_ERROR(behind);
  StepTokenRow out{.ids = std::move(*ids), .ends = {}};
  for (const auto& step : steps) {
    const auto piece = encoder.encode(step, false);
    RETURN_IF_ERROR(piece);
    out.ids.insert(out.ids.end(), piece->begin(), piece->end());
    out.ids.insert(out.ids.end(), behind->begin(), behind->end());
    if (out.ids.size() < 2 || (piece->empty() && behind->empty()))
      return bad_row(cat("step ", out.ends.size(), " has no token for its label (its text is ",
                         quote(step), ", the separator ", quote(separator), ")"));
    out.ends.push_back(static_cast<std::int32_t>(out.ids.size()) - 1);
  }
  return out;
}

Result<std::optional<StepExample>> encode_steps(const Sample& sample, const TextEncoder& encoder,
                                                const EncodeOptions& options) {
  auto example = sample.step_labels->steps.empty()
                     ? with_placeholders(sample, encoder, options.steps)
                     : with_separators(sample, encoder, options.steps);
  RETURN_IF_ERROR(example);
  RETURN_IF_ERROR(check_vocabulary(example->ids, encoder));
  if (!example->classes.empty() && example->classes.front() >= 0)
    return bad_row("the first token is a placeholder: there is no step before it");
  const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(options.max_length, 0));
  if (limit > 0 && example->ids.size() > limit) {
    example->cut_tokens = static_cast<std::int64_t>(example->ids.size() - limit);
    example->ids.resize(limit);
    example->classes.resize(limit);
  }
  if (std::all_of(example->classes.begin(), example->classes.end(), [](auto c) { return c < 0; }))
    return std::nullopt;
  return std::move(*example);
}

}  // namespace troupe::engine::data
