#include "engine/data/layouts/token_rows.h"

#include <limits>

#include "engine/base/text.h"
#include "engine/data/layouts/pairwise.h"

namespace troupe::engine::data {
namespace {

constexpr std::int32_t not_trained = -100;

Result<std::vector<std::int32_t>> integers(const Columns& row, const std::string& name,
                                           std::int64_t lowest, std::int64_t end) {
  const auto* list = row.find(name);
  if (!list || !list->is_array())
    return bad_row(cat("expected a list of token ids under ", quote(row.file_name(name)),
                       ", found ", list ? list->type_name() : "nothing"));
  std::vector<std::int32_t> out;
  out.reserve(list->array().size());
  for (const auto& item : list->array()) {
    const bool fits = item.is_integer() &&
                      (item.integer() == lowest || (item.integer() >= 0 && item.integer() < end));
    if (!fits) {
      return bad_row(cat(quote(row.file_name(name)), ", item ", out.size(),
                         ": expected a token id from 0 to ", end - 1, lowest < 0 ? ", or -100" : "",
                         ", found ",
                         item.is_number() ? item.dump() : std::string(item.type_name())));
    }
    out.push_back(static_cast<std::int32_t>(item.integer()));
  }
  return out;
}

Result<TokenRow> token_row(const Columns& row, const std::string& ids, const std::string& labels,
                           const LayoutOptions& options) {
  const auto end = options.vocabulary > 0 ? options.vocabulary
                                          : std::int64_t{std::numeric_limits<std::int32_t>::max()};
  auto tokens = integers(row, ids, 0, end);
  RETURN_IF_ERROR(tokens);
  if (tokens->empty()) return bad_row(cat(quote(row.file_name(ids)), " is empty"));
  if (!row(labels)) return TokenRow{*tokens, *tokens};
  auto targets = integers(row, labels, not_trained, end);
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
  return TokenRow{std::move(*tokens), std::move(*targets)};
}

}  // namespace

Result<Sample> token_sample(const Columns& row, const LayoutOptions& options) {
  Sample sample;
  const bool pairs = options.purpose == Purpose::pairs;
  auto tokens = pairs ? token_row(row, "chosen_input_ids", "chosen_labels", options)
                      : token_row(row, "input_ids", "labels", options);
  RETURN_IF_ERROR(tokens);
  sample.tokens = std::move(*tokens);
  if (pairs) {
    auto rejected = token_row(row, "rejected_input_ids", "rejected_labels", options);
    RETURN_IF_ERROR(rejected);
    sample.rejected_tokens = std::move(*rejected);
    const auto margin = margin_of(row);
    RETURN_IF_ERROR(margin);
    sample.margin = *margin;
  }
  if (options.purpose == Purpose::prompts) {
    if (const auto* answer = row.first({"answer", "ground_truth"})) sample.answer = *answer;
    sample.columns = row.others({"input_ids", "labels", "answer"});
  }
  return sample;
}

}  // namespace troupe::engine::data
