#include "engine/data/layouts/pairwise.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "engine/data/layouts/messages.h"

namespace troupe::engine::data {
namespace {

// Two whole texts: their common prefix is the prompt. HH-RLHF's dialogues are split after the last
// common "Assistant:", other texts before the space where they diverge (as in TRL), so that the
// completions begin with it.
Sample split_texts(const std::string& chosen, const std::string& rejected) {
  auto common = static_cast<std::size_t>(
      std::mismatch(chosen.begin(), chosen.end(), rejected.begin(), rejected.end()).first -
      chosen.begin());
  constexpr std::string_view marker = "\n\nAssistant:";
  const auto last = std::string_view(chosen).substr(0, common).rfind(marker);
  if (last != std::string_view::npos) {
    common = last + marker.size();
  } else {
    while (common > 0 && common < chosen.size() &&
           (static_cast<unsigned char>(chosen[common]) & 0xC0) == 0x80)
      --common;
    if (common > 0 && chosen[common - 1] == ' ') --common;
  }
  return Sample{.prompt = Json(std::string_view(chosen).substr(0, common)),
                .completion = Json(std::string_view(chosen).substr(common)),
                .rejected = Json(std::string_view(rejected).substr(common))};
}

// Two whole conversations: the common messages before the last assistant message are the prompt.
Result<Sample> split_messages(const Json& chosen, const Json& rejected) {
  const auto &a = chosen.array(), &b = rejected.array();
  auto common = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  common = std::min({common, a.size() - 1, b.size() - 1});
  while (common > 0 && is_assistant(a[common - 1])) --common;
  if (common == 0)
    return bad_row(
        "the chosen and the rejected conversation begin with different messages: there is no "
        "common prompt");
  const auto cut = static_cast<std::ptrdiff_t>(common);
  return Sample{.prompt = Json(Json::Array(a.begin(), a.begin() + cut)),
                .completion = Json(Json::Array(a.begin() + cut, a.end())),
                .rejected = Json(Json::Array(b.begin() + cut, b.end()))};
}

// The completion under `name`: text or messages.
Result<Json> completion(const Columns& row, const std::string& name) {
  const auto* value = row.find(name);
  if (!value) return bad_row(cat("nothing under ", quote(row.file_name(name))));
  if (value->is_string()) return *value;
  if (!value->is_array() && !value->is_object())
    return bad_row(cat("expected text or a list of messages under ", quote(row.file_name(name)),
                       ", found ", value->type_name()));
  auto list = to_messages(*value, row.tags());
  if (!list) return bad_row(cat(quote(row.file_name(name)), ": ", list.error().what));
  return list;
}

// The prompt, from any of its columns: text or messages; null if there is none.
Result<Json> prompt(const Columns& row, const LayoutOptions& options) {
  if (const auto* list = row.first({"conversations", "messages"}))
    return to_messages(*list, row.tags());
  if (!row("prompt") && row("instruction")) return alpaca_prompt(row, options);
  const auto* value = row.first({"prompt", "question"});
  if (!value) return Json();
  if (value->is_string()) return *value;
  if (value->is_array() || value->is_object()) return to_messages(*value, row.tags());
  return bad_row(
      cat("expected text or a list of messages as the prompt, found ", value->type_name()));
}

Json as_messages(const Json& value, std::string_view role) {
  return value.is_string() ? Json(Json::Array{message(role, value.string())}) : value;
}

bool is_whole_dialogue(const Json& value) {
  return value.is_array() && value.array().size() > 1 && !is_assistant(value.array().front());
}

}  // namespace

Result<std::optional<double>> margin_of(const Columns& row) {
  const auto* value = row.find("margin");
  if (!value) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->number()))
    return bad_row(
        cat("expected a number under ", quote(row.file_name("margin")), ", found ",
            value->is_string() ? quote(value->string()) : std::string(value->type_name())));
  return value->number();
}

Result<Sample> pairwise_sample(const Columns& row, const LayoutOptions& options) {
  auto chosen = completion(row, "chosen"), rejected = completion(row, "rejected"),
       given = prompt(row, options), tools = to_tools(row.find("tools"));
  for (const auto* part : {&chosen, &rejected, &given, &tools}) RETURN_IF_ERROR(*part);
  Result<Sample> sample = Sample{.prompt = *given, .completion = *chosen, .rejected = *rejected};
  // UltraFeedback has whole conversations, and the prompt as a separate column.
  const bool whole =
      is_whole_dialogue(*chosen) && is_whole_dialogue(*rejected) && !given->is_array();
  if (whole) {
    sample = split_messages(*chosen, *rejected);
  } else if (given->is_null()) {
    if (!chosen->is_string() || !rejected->is_string())
      return bad_row(
          "there is no prompt: expected \"prompt\", or whole dialogues in chosen and rejected");
    sample = split_texts(chosen->string(), rejected->string());
  }
  if (!sample) return sample;
  const bool chat = options.chat == ChatUse::always || sample->prompt.is_array() ||
                    sample->completion.is_array() || sample->rejected.is_array();
  if (chat) {
    sample->prompt = as_messages(sample->prompt, "user");
    sample->completion = as_messages(sample->completion, "assistant");
    sample->rejected = as_messages(sample->rejected, "assistant");
  }
  sample->tools = std::move(*tools);
  const auto margin = margin_of(row);
  RETURN_IF_ERROR(margin);
  sample->margin = *margin;
  return sample;
}

}  // namespace troupe::engine::data
