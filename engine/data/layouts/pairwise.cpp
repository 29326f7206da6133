#include "engine/data/layouts/pairwise.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
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
  const auto* found = row.find(name);
  if (!found) return bad_row(cat("nothing under ", quote(row.file_name(name))));
  const auto value = parsed_messages(*found, row.tags());
  if (!value) return bad_row(cat(quote(row.file_name(name)), ": ", value.error().what));
  if (value->is_string()) return *value;
  if (!value->is_array() && !value->is_object())
    return bad_row(cat("expected text or a list of messages under ", quote(row.file_name(name)),
                       ", found ", value->type_name()));
  auto list = to_messages(*value, row.tags());
  if (!list) return bad_row(cat(quote(row.file_name(name)), ": ", list.error().what));
  return list;
}

// Text or messages, and the column that has them; null if there is none.
struct Given {
  Json value;
  const char* column = "";
};

// The column with the prompt; "prompt" if there is none.
const char* prompt_column(const Columns& row) {
  return row.first_name(
      {"prompt", "conversations", "messages", "instruction", "question", "input"});
}

Result<Given> prompt(const Columns& row, const LayoutOptions& options) {
  const char* const name = prompt_column(row);
  if (!row(name)) return Given{};
  auto value =
      std::string_view(name) == "instruction" ? alpaca_prompt(row, options) : completion(row, name);
  RETURN_IF_ERROR(value);
  return Given{std::move(*value), name};
}

Json as_messages(const Json& value, std::string_view role) {
  return value.is_string() ? Json(Json::Array{message(role, value.string())}) : value;
}

std::string_view member_text(const Json& message, const char* member) {
  const auto* value = message.find(member);
  return value && value->is_string() ? std::string_view(value->string()) : std::string_view();
}

// A conversation from its beginning, not the continuation of a prompt.
bool is_whole_dialogue(const Json& value) {
  if (!value.is_array() || value.array().size() < 2) return false;
  const auto role = member_text(value.array().front(), "role");
  return role != "assistant" && role != "tool";
}

// HH-RLHF's dialogues.
bool is_whole_text(const Json& value) {
  return value.is_string() && value.string().starts_with("\n\nHuman:");
}

bool ends_with(const Json::Array& list, const Json::Array& end) {
  return list.size() >= end.size() && std::equal(end.rbegin(), end.rend(), list.rbegin());
}
bool begins_with(const Json::Array& list, const Json::Array& begin) {
  return list.size() >= begin.size() && std::equal(begin.begin(), begin.end(), list.begin());
}

// The messages of a column beside two whole dialogues: the same beginning, one of the dialogues, or
// the beginning with messages before it, such as a system message.
Result<> agree(const Columns& row, const char* column, const Json& list, Sample& sample,
               const Json& chosen, const Json& rejected) {
  if (list == chosen || list == rejected || begins_with(sample.prompt.array(), list.array()))
    return {};
  if (ends_with(list.array(), sample.prompt.array())) {
    sample.prompt = list;
    return {};
  }
  return bad_row(cat(quote(row.file_name(column)),
                     " has other messages than the beginning that chosen and rejected have in "
                     "common; remove the prompt's messages from chosen and rejected, or set "
                     "data.columns.",
                     column, " to \"\", which leaves the column out"));
}

// Two whole dialogues have the prompt, whatever other columns say of it (as in TRL).
Result<std::optional<Sample>> from_dialogues(const Columns& row, const Json& chosen,
                                             const Json& rejected) {
  if (is_whole_text(chosen) && is_whole_text(rejected))
    return split_texts(chosen.string(), rejected.string());
  if (!is_whole_dialogue(chosen) || !is_whole_dialogue(rejected)) return std::optional<Sample>();
  auto sample = split_messages(chosen, rejected);
  RETURN_IF_ERROR(sample);
  for (const char* name : {"prompt", "conversations", "messages"}) {
    if (!row(name)) continue;
    // A text is not used (UltraFeedback), and listed as a column that is not read.
    const auto text = parsed_messages(*row.look(name), row.tags());
    if (text && text->is_string()) continue;
    const auto list = completion(row, name);
    RETURN_IF_ERROR(list);
    RETURN_IF_ERROR(agree(row, name, *list, *sample, chosen, rejected));
  }
  return std::optional(std::move(*sample));
}

// The messages of a second column: those of the prompt, with one of the answers or without.
Result<> check_second_column(const Columns& row, const Given& given, const Sample& sample) {
  if (std::string_view(given.column) != "prompt") return {};
  const Json::Array first = as_messages(given.value, "user").array();
  for (const char* name : {"conversations", "messages"}) {
    if (!row(name)) continue;
    const auto list = completion(row, name);
    RETURN_IF_ERROR(list);
    Json::Array other = as_messages(*list, "user").array();
    for (const Json* answer : {&sample.completion, &sample.rejected}) {
      const Json::Array end = as_messages(*answer, "assistant").array();
      if (other.size() > end.size() && ends_with(other, end)) {
        other.resize(other.size() - end.size());
        break;
      }
    }
    if (other != first)
      return bad_row(cat(quote(row.file_name("prompt")), " and ", quote(row.file_name(name)),
                         " are two different prompts; set data.columns.prompt or data.columns.",
                         name, " to \"\", which leaves the column out"));
  }
  return {};
}

// The text of the answer that a prompt already ends with; empty without one.
std::string_view answer_in(const Json& prompt) {
  if (prompt.is_array())
    return is_assistant(prompt.array().back()) ? member_text(prompt.array().back(), "content")
                                               : std::string_view();
  constexpr std::string_view marker = "\n\nAssistant:";
  const std::string_view text = prompt.string();
  const auto last = text.rfind(marker);
  return last == text.npos ? std::string_view() : text.substr(last + marker.size());
}

// A prompt with the chosen answer would show it to the model before both answers.
Result<> check_prompt(const Columns& row, const Given& given, const Sample& sample) {
  const std::string_view held = trim(answer_in(sample.prompt), " \t\r\n");
  if (held.empty()) return {};
  for (const auto& [name, answer] :
       {std::pair("chosen", &sample.completion), {"rejected", &sample.rejected}}) {
    const std::string_view text =
        answer->is_string() ? answer->string() : member_text(answer->array().front(), "content");
    if (held == trim(text, " \t\r\n"))
      return bad_row(cat("the prompt under ", quote(row.file_name(given.column)),
                         " already ends with the answer under ", quote(row.file_name(name)),
                         ", which would be in the prompt of both answers; remove it from the "
                         "prompt, or set data.columns.",
                         given.column, " to \"\", which leaves the column out"));
  }
  return {};
}

// The sample from a column with the prompt, or from what two texts have in common.
Result<Sample> from_prompt(const Columns& row, const LayoutOptions& options, const Json& chosen,
                           const Json& rejected) {
  const auto given = prompt(row, options);
  RETURN_IF_ERROR(given);
  if (is_whole_dialogue(chosen) != is_whole_dialogue(rejected))
    return bad_row(cat("expected two whole dialogues or two answers under ",
                       quote(row.file_name("chosen")), " and ", quote(row.file_name("rejected")),
                       "; only the ", is_whole_dialogue(chosen) ? "first" : "second",
                       " is a whole dialogue"));
  if (given->value.is_null()) {
    if (!chosen.is_string() || !rejected.is_string())
      return bad_row(
          "there is no prompt: expected \"prompt\", \"conversations\", \"messages\", "
          "\"instruction\", "
          "\"question\" or \"input\", or whole dialogues in chosen and rejected");
    return split_texts(chosen.string(), rejected.string());
  }
  Sample out{.prompt = given->value, .completion = chosen, .rejected = rejected};
  RETURN_IF_ERROR(check_prompt(row, *given, out));
  RETURN_IF_ERROR(check_second_column(row, *given, out));
  return out;
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
  auto chosen = completion(row, "chosen"), rejected = completion(row, "rejected");
  for (const auto* part : {&chosen, &rejected}) RETURN_IF_ERROR(*part);
  auto whole = from_dialogues(row, *chosen, *rejected);
  RETURN_IF_ERROR(whole);
  auto sample =
      *whole ? Result<Sample>(std::move(**whole)) : from_prompt(row, options, *chosen, *rejected);
  RETURN_IF_ERROR(sample);
  const bool chat = options.chat == ChatUse::always || sample->prompt.is_array() ||
                    sample->completion.is_array() || sample->rejected.is_array();
  if (chat) {
    sample->prompt = as_messages(sample->prompt, "user");
    sample->completion = as_messages(sample->completion, "assistant");
    sample->rejected = as_messages(sample->rejected, "assistant");
  }
  if (chat) {  // only a chat template can show tools
    auto tools = to_tools(row.find("tools"));
    RETURN_IF_ERROR(tools);
    sample->tools = std::move(*tools);
  }
  for (const auto& [name, answer] :
       {std::pair("chosen", &sample->completion), {"rejected", &sample->rejected}})
    if (answer->is_array() && std::ranges::none_of(answer->array(), is_assistant))
      return bad_row(cat(quote(row.file_name(name)), " has no message of the assistant"));
  const bool alpaca = !*whole && std::string_view("instruction") == prompt_column(row);
  if (!alpaca)
    RETURN_IF_ERROR(add_system(row, options, sample->prompt));  // alpaca_prompt() adds it
  const auto margin = margin_of(row);
  RETURN_IF_ERROR(margin);
  sample->margin = *margin;
  return sample;
}

}  // namespace troupe::engine::data
