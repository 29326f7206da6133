#include "engine/data/layouts/steps.h"

#include <algorithm>

#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

using Ids = std::vector<std::int32_t>;

tl::unexpected<Error> bad(std::string what) {
  return fail(Errc::bad_input, std::move(what));
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
          ", which is ", ids->size(), " tokens; choose another, or add it to the tokenizer"));
}

Result<std::int32_t> class_of(const std::string& value, std::size_t item,
                              const StepTokens& tokens) {
  const auto found = std::find(tokens.reward_texts.begin(), tokens.reward_texts.end(), value);
  if (found != tokens.reward_texts.end())
    return static_cast<std::int32_t>(found - tokens.reward_texts.begin());
  std::vector<std::string> known;
  for (const auto& text : tokens.reward_texts) known.push_back(quote(text));
  return bad(cat("\"value\", item ", item, ": expected one of prm.reward_tokens (",
                 join(known, ", "), "), found ", quote(value)));
}

Result<StepExample> with_separators(const Sample& sample, const TextEncoder& encoder,
                                    const StepOptions& options) {
  if (options.tokens)
    return fail(Errc::usage,
                "the rows have steps and labels (prompt, completions, labels), and prm.kind is "
                "placeholder, which wants input and value; "
                "choose prm.kind: token_class");
  const auto& judged = *sample.judged;
  auto row = tokenise_steps(sample.prompt.string(), judged.steps, options.separator, encoder);
  RETURN_IF_ERROR(row);
  StepExample out{.ids = std::move(row->ids)};
  out.classes.assign(out.ids.size(), -1);
  for (std::size_t k = 0; k < row->ends.size(); ++k) {
    if (judged.classes[k] >= options.classes)
      return bad(cat("\"labels\", item ", k, ": expected a class from 0 to ", options.classes - 1,
                     ", found ", judged.classes[k]));
    if (!options.last_step_only || k + 1 == row->ends.size())
      out.classes[static_cast<std::size_t>(row->ends[k])] = judged.classes[k];
  }
  return out;
}

// Of Math-Shepherd's label, which is the text with a reward token in the place of each placeholder.
Result<std::vector<std::string>> reward_tokens(const Sample& sample, const StepTokens& tokens) {
  if (sample.judged->labelled.empty()) return sample.judged->values;
  std::string_view text = sample.prompt.string(), label = sample.judged->labelled;
  std::vector<std::string> out;
  for (;;) {
    const auto mark = text.find(tokens.placeholder_text);
    const auto piece = text.substr(0, mark);
    if (!label.starts_with(piece) || (mark == std::string_view::npos && label != piece))
      return bad(
          cat("\"label\": expected the text of \"input\" with a reward token in the place of each ",
              quote(tokens.placeholder_text), "; they differ behind reward token ", out.size()));
    if (mark == std::string_view::npos) return out;
    text.remove_prefix(mark + tokens.placeholder_text.size()), label.remove_prefix(piece.size());
    const std::string* found = nullptr;
    for (const auto& reward : tokens.reward_texts)
      if (label.starts_with(reward) && (!found || reward.size() > found->size())) found = &reward;
    if (!found)
      return bad(cat("\"label\", step ", out.size(), ": expected one of prm.reward_tokens, found ",
                     quote(label.substr(0, 12))));
    out.push_back(*found), label.remove_prefix(found->size());
  }
}

Result<StepExample> with_placeholders(const Sample& sample, const TextEncoder& encoder,
                                      const StepOptions& options) {
  if (!options.tokens)
    return fail(Errc::usage,
                "the rows have placeholders (input, value), and prm.kind is token_class, which "
                "wants prompt, completions and labels; "
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
    return bad(cat("\"input\": expected one placeholder ", quote(options.tokens->placeholder_text),
                   " (token ", options.tokens->placeholder, ") for each of the ", values.size(),
                   " under \"value\", found ", steps));
  return out;
}

}  // namespace

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

Result<StepTokenRow> tokenise_steps(std::string_view prompt, const std::vector<std::string>& steps,
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
      return bad(cat("step ", out.ends.size(), " has no token to be judged at (its text is ",
                     quote(step), ", the separator ", quote(separator), ")"));
    out.ends.push_back(static_cast<std::int32_t>(out.ids.size()) - 1);
  }
  return out;
}

Result<std::optional<StepExample>> encode_steps(const Sample& sample, const TextEncoder& encoder,
                                                const EncodeOptions& options) {
  auto example = sample.judged->steps.empty() ? with_placeholders(sample, encoder, options.steps)
                                              : with_separators(sample, encoder, options.steps);
  RETURN_IF_ERROR(example);
  RETURN_IF_ERROR(check_vocabulary(example->ids, encoder));
  if (!example->classes.empty() && example->classes.front() >= 0)
    return bad("the first token is a placeholder: there is no step before it to judge");
  const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(options.max_length, 0));
  if (limit > 0 && example->ids.size() > limit) {
    example->ids.resize(limit), example->classes.resize(limit);
    example->truncated = true;
  }
  if (std::all_of(example->classes.begin(), example->classes.end(), [](auto c) { return c < 0; }))
    return std::nullopt;
  return std::move(*example);
}

}  // namespace troupe::engine::data
