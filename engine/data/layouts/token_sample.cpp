#include "engine/data/layouts/token_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/text/text.h"
#include "engine/data/layouts/pairwise.h"

namespace troupe::engine::data {
namespace {

constexpr std::int32_t not_trained = -100;

// Tables with missing values have their integers as floating-point numbers (416.0).
std::optional<std::int64_t> whole_number(const Json& item) {
  if (item.is_integer()) return item.integer();
  if (!item.is_number()) return std::nullopt;
  const double value = item.number();
  if (std::floor(value) != value || std::abs(value) > 1e9) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Result<std::vector<std::int32_t>> integers(const Columns& row, const std::string& name,
                                           std::int64_t lowest, std::int64_t end) {
  const auto* list = row.find(name);
  if (!list || !list->is_array())
    return bad_row(cat("expected a list of token ids under ", quote(row.file_name(name)),
                       ", found ", list ? list->type_name() : "nothing"));
  std::vector<std::int32_t> out;
  out.reserve(list->array().size());
  for (const auto& item : list->array()) {
    const auto id = whole_number(item);
    const bool fits = id && (*id == lowest || (*id >= 0 && *id < end));
    if (!fits) {
      return bad_row(cat(quote(row.file_name(name)), ", item ", out.size(),
                         ": expected a token id from 0 to ", end - 1, lowest < 0 ? ", or -100" : "",
                         ", found ",
                         item.is_number() ? item.dump() : std::string(item.type_name())));
    }
    out.push_back(static_cast<std::int32_t>(*id));
  }
  return out;
}

// A row of 0 and 1, as long as the ids of the same part of the row ("chosen_").
Result<std::vector<std::int32_t>> zero_one_mask(const Columns& row, const std::string& part,
                                                const std::string& column, std::size_t count) {
  const std::string name = part + column;
  const auto* list = row.find(name);
  const auto wrong = [&](const std::string& found) {
    return bad_row(cat("expected ", count, " values, 0 or 1, one for each of ",
                       quote(row.file_name(part + "input_ids")), ", under ",
                       quote(row.file_name(name)), ", found ", found));
  };
  if (!list->is_array()) return wrong(list->type_name());
  if (list->array().size() != count) return wrong(cat(list->array().size()));
  std::vector<std::int32_t> out;
  for (const Json& item : list->array()) {
    const auto number =
        item.is_bool() ? std::optional<std::int64_t>(item.boolean() ? 1 : 0) : whole_number(item);
    if (!number || (*number != 0 && *number != 1)) return wrong(quote(item.dump(), 24));
    out.push_back(static_cast<std::int32_t>(*number));
  }
  return out;
}

// Columns that say of a row that it is several sequences, or that it is padded.
Result<> check_one_sequence(const Columns& row, const std::string& part, std::size_t count) {
  if (const std::string name = part + "attention_mask"; row(name)) {
    const auto attended = zero_one_mask(row, part, "attention_mask", count);
    RETURN_IF_ERROR(attended);
    if (std::ranges::find(*attended, 0) != attended->end())
      return bad_row(
          cat(quote(row.file_name(name)),
              " has a 0: padding is not removed; remove the tokens, or set data.columns.", name,
              " to \"\" to train on them"));
  }
  for (const char* column : {"position_ids", "seq_lengths"}) {
    const std::string name = part + column;
    const Json* value = row.find(name);
    if (!value) continue;
    Json::Array one;
    if (std::string_view(column) == "seq_lengths") one.emplace_back(std::uint64_t{count});
    for (std::size_t i = 0; std::string_view(column) == "position_ids" && i < count; ++i)
      one.emplace_back(std::uint64_t{i});
    if (value->dump() != Json(std::move(one)).dump())
      return bad_row(cat(quote(row.file_name(name)), " does not describe one sequence of ", count,
                         " tokens from position 0: a row with several sequences (packed by TRL) is "
                         "not divided; write a row for each, or set data.columns.",
                         name, " to \"\""));
  }
  return {};
}

// Applies the masks of a row, all of them, to its labels.
Result<> apply_masks(const Columns& row, const std::string& part,
                     std::vector<std::int32_t>& labels) {
  for (const char* column : {"completion_mask", "assistant_masks", "assistant_mask", "loss_mask"}) {
    const std::string name = part + column;
    if (!row(name)) continue;
    const auto trained = zero_one_mask(row, part, column, labels.size());
    RETURN_IF_ERROR(trained);
    for (std::size_t i = 0; i < labels.size(); ++i)
      if ((*trained)[i] == 0) labels[i] = not_trained;
  }
  return {};
}

// One more than the largest id.
std::int64_t end_of_ids(const LayoutOptions& options) {
  return options.vocabulary > 0 ? options.vocabulary
                                : std::int64_t{std::numeric_limits<std::int32_t>::max()};
}

Result<std::vector<std::int32_t>> token_ids(const Columns& row, const std::string& name,
                                            const LayoutOptions& options) {
  auto ids = integers(row, name, 0, end_of_ids(options));
  if (ids && ids->empty()) return bad_row(cat(quote(row.file_name(name)), " is empty"));
  return ids;
}

Result<TokenRow> token_row(const Columns& row, const std::string& part,
                           const LayoutOptions& options) {
  const std::string ids = part + "input_ids", labels = part + "labels";
  auto tokens = token_ids(row, ids, options);
  RETURN_IF_ERROR(tokens);
  RETURN_IF_ERROR(check_one_sequence(row, part, tokens->size()));
  if (!row(labels)) {
    TokenRow out{*tokens, *tokens};
    RETURN_IF_ERROR(apply_masks(row, part, out.labels));
    return out;
  }
  auto targets = integers(row, labels, not_trained, end_of_ids(options));
  RETURN_IF_ERROR(targets);
  if (targets->size() != tokens->size())
    return bad_row(cat("expected as many labels as token ids, found ", targets->size(), " under ",
                       quote(row.file_name(labels)), " and ", tokens->size(), " under ",
                       quote(row.file_name(ids))));
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    if ((*targets)[i] == not_trained || (*targets)[i] == (*tokens)[i]) continue;
    return bad_row(cat(quote(row.file_name(labels)), ", item ", i,
                       ": expected -100 or the token itself, ", (*tokens)[i],
                       " (labels are not shifted), found ", (*targets)[i]));
  }
  RETURN_IF_ERROR(apply_masks(row, part, *targets));
  return TokenRow{std::move(*tokens), std::move(*targets)};
}

// TRL's rows of pairs have the prompt once, and completions without it.
Result<> add_token_prompt(const Columns& row, const LayoutOptions& options, Sample& sample) {
  if (!row("prompt_input_ids")) return {};
  for (const char* labels : {"chosen_labels", "rejected_labels"})
    if (row(labels))
      return bad_row(cat(quote(row.file_name("prompt_input_ids")), " and ",
                         quote(row.file_name(labels)),
                         ": expected one of them; labels mark the prompt within the other ids. Set "
                         "data.columns.prompt_input_ids to \"\" if they do"));
  const auto prompt = token_row(row, "prompt_", options);
  RETURN_IF_ERROR(prompt);
  for (auto* tokens : {&sample.tokens, &sample.rejected_tokens}) {
    auto& [ids, targets] = **tokens;
    ids.insert(ids.begin(), prompt->ids.begin(), prompt->ids.end());
    targets.insert(targets.begin(), prompt->ids.size(), not_trained);
  }
  return {};
}

// A prompt of ids: labels and masks of a prompt have no effect, so they are not read.
Result<Sample> token_prompt(const Columns& row, const LayoutOptions& options) {
  const auto ids = token_ids(row, "input_ids", options);
  RETURN_IF_ERROR(ids);
  RETURN_IF_ERROR(check_one_sequence(row, "", ids->size()));
  Sample sample;
  sample.tokens = TokenRow{*ids, *ids};
  if (const auto* answer = row.first({"answer", "ground_truth"})) sample.answer = *answer;
  sample.columns = row.others({"input_ids"});
  return sample;
}

}  // namespace

Result<Sample> token_sample(const Columns& row, const LayoutOptions& options) {
  if (options.purpose == Purpose::prompts) return token_prompt(row, options);
  Sample sample;
  const bool pairs = options.purpose == Purpose::pairs;
  auto tokens = token_row(row, pairs ? "chosen_" : "", options);
  RETURN_IF_ERROR(tokens);
  sample.tokens = std::move(*tokens);
  if (pairs) {
    auto rejected = token_row(row, "rejected_", options);
    RETURN_IF_ERROR(rejected);
    sample.rejected_tokens = std::move(*rejected);
    RETURN_IF_ERROR(add_token_prompt(row, options, sample));
    const auto margin = margin_of(row);
    RETURN_IF_ERROR(margin);
    sample.margin = *margin;
  }
  return sample;
}

}  // namespace troupe::engine::data
