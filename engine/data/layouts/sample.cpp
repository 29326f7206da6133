#include "engine/data/layouts/sample.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/data/layouts/columns.h"
#include "engine/data/layouts/messages.h"
#include "engine/data/layouts/pairwise.h"
#include "engine/data/layouts/steps.h"
#include "engine/data/layouts/token_sample.h"
#include "engine/data/layouts/unpaired.h"

namespace troupe::engine::data {

namespace {

bool is_empty_value(const Json& value) {
  return (value.is_string() && value.string().empty()) ||
         (value.is_array() && value.array().empty()) ||
         (value.is_object() && value.object().empty());
}

// A number other than 1, or false; in a csv file everything is text.
bool is_weight(const Json& value) {
  if (value.is_string()) {
    const std::string& text = value.string();
    return text == "false" || text == "False" || parse_number<double>(text).value_or(1) != 1;
  }
  return (value.is_bool() && !value.boolean()) || (value.is_number() && value.number() != 1);
}

struct Kind {
  std::string_view why;
  bool (*changes)(const Json& value);
  std::vector<std::string_view> names;
};

const std::vector<Kind>& kinds() {
  constexpr auto is_given = [](const Json& value) { return !is_empty_value(value); };
  static const std::vector<Kind> all = {
      {"weights of rows are not supported",
       is_weight,
       {"weight", "loss_weight", "sample_weight", "train"}},
      {"only text is trained on",
       is_given,
       {"images", "image", "videos", "video", "audios", "audio"}},
      {"it belongs to the prompt, and rows of this layout have no place for it",
       is_given,
       {"system", "context", "input", "history", "tools", "functions", "documents", "chat_template",
        "chat_template_kwargs"}}};
  return all;
}

/// Errc::bad_input, without the location, for one of `unread` (names in the file) that other tools
/// read and that would change the result: a weight other than 1, images and sounds, texts and
/// settings of the prompt. Empty values pass, and so do columns that nobody can know.
Result<> check_unread(const Columns& row, const std::vector<std::string>& unread) {
  for (const std::string& key : unread) {
    const Json* value = row.row().find(key);
    if (!value) continue;  // a path into a column that is read in part
    for (const Kind& kind : kinds())
      // A column whose name data.columns gives to another one is not meant by that name.
      if (std::ranges::find(kind.names, key) != kind.names.end() && row.file_name(key) == key &&
          kind.changes(*value))
        return bad_row(cat("the column ", quote(key),
                           " is not read and would change the result: ", kind.why,
                           ". Set data.columns.", key, " to \"\" to leave the column out"));
  }
  return {};
}

// A prompt or a completion: a string, or messages; in a chat a string becomes one message.
Result<Json> text_or_messages(const Columns& row, const Json& value, const std::string& name,
                              std::string_view role, bool chat) {
  if (value.is_string()) return chat ? Json(Json::Array{message(role, value.string())}) : value;
  if (!value.is_array() && !value.is_object())
    return bad_row(cat("expected text or a list of messages under ", quote(name), ", found ",
                       value.type_name()));
  auto list = to_messages(value, row.tags());
  if (!list) return bad_row(cat(quote(name), ": ", list.error().what));
  return list;
}

// The column `tools`, which only a chat template can show: of texts it is not read.
Result<Json> tools_of(const Columns& row, bool chat) {
  return chat ? to_tools(row.find("tools")) : Json();
}

// The value of a column, with messages that are given as JSON text as a list.
Result<Json> parsed_column(const Columns& row, const std::string& name) {
  auto value = parsed_messages(*row.find(name), row.tags());
  if (!value) return bad_row(cat(quote(row.file_name(name)), ": ", value.error().what));
  return value;
}

Result<Sample> prompt_and_completion(const Columns& row, const char* prompt, const char* completion,
                                     const LayoutOptions& options) {
  const bool has_prompt = row(prompt);
  if (!has_prompt || !row(completion))
    return bad_row(cat("nothing under ", quote(row.file_name(has_prompt ? completion : prompt))));
  const auto given = parsed_column(row, prompt), answer = parsed_column(row, completion);
  RETURN_IF_ERROR(given);
  RETURN_IF_ERROR(answer);
  // If one side is a list of messages, the other becomes one too.
  const bool chat = options.chat == ChatUse::always || !given->is_string() || !answer->is_string();
  auto left = text_or_messages(row, *given, row.file_name(prompt), "user", chat);
  RETURN_IF_ERROR(left);
  auto right = text_or_messages(row, *answer, row.file_name(completion), "assistant", chat);
  RETURN_IF_ERROR(right);
  RETURN_IF_ERROR(add_system(row, options, *left));
  auto tools = tools_of(row, chat);
  RETURN_IF_ERROR(tools);
  return Sample{
      .prompt = std::move(*left), .completion = std::move(*right), .tools = std::move(*tools)};
}

Result<Sample> messages_of(const Columns& row, const LayoutOptions& options) {
  const auto name = row.first_name({"messages", "conversations"});
  const auto value = parsed_column(row, name);
  RETURN_IF_ERROR(value);
  auto list = to_messages(*value, row.tags());
  if (!list) return bad_row(cat(quote(row.file_name(name)), ": ", list.error().what));
  RETURN_IF_ERROR(add_system(row, options, *list));
  auto tools = to_tools(row.find("tools"));
  RETURN_IF_ERROR(tools);
  return Sample{.completion = std::move(*list), .tools = std::move(*tools)};
}

// The label of a conversation applies to its last message.
Result<Sample> split_last_message(const Columns& row, Sample sample) {
  auto& messages = sample.completion.array();
  if (messages.size() < 2 || !is_assistant(messages.back()))
    return bad_row(
        cat(quote(row.file_name(row.first_name({"messages", "conversations"}))),
            ": expected a conversation that ends with an assistant message, to which the label "
            "applies"));
  Json answer = Json::Array{std::move(messages.back())};
  messages.pop_back();
  sample.prompt = std::exchange(sample.completion, std::move(answer));
  return sample;
}

Result<Sample> conversation(const Columns& row, const LayoutOptions& options) {
  if (!row.first({"messages", "conversations"})) return bad_row("nothing under \"messages\"");
  auto sample = messages_of(row, options);
  if (!sample) return sample;
  if (options.purpose == Purpose::unpaired) return split_last_message(row, std::move(*sample));
  for (const auto& item : sample->completion.array())
    if (is_assistant(item)) return sample;
  return bad_row(cat(quote(row.file_name(row.first_name({"messages", "conversations"}))),
                     ": the conversation has no assistant message to train on"));
}

Result<Sample> text_row(const Columns& row) {
  if (row("role") && row.has_key("parent_id"))
    return bad_row(
        "\"role\" and \"parent_id\": a row is one message of a tree of conversations "
        "(OpenAssistant), which are not put together; write each conversation as \"messages\"");
  auto text = row.string("text");
  RETURN_IF_ERROR(text);
  return Sample{.prompt = Json(), .completion = Json(std::move(*text))};
}

Result<Sample> alpaca(const Columns& row, const LayoutOptions& options) {
  auto prompt = alpaca_prompt(row, options);
  RETURN_IF_ERROR(prompt);
  const auto output = row.string(row.first_name({"output", "completion", "response"}));
  RETURN_IF_ERROR(output);
  auto tools = tools_of(row, prompt->is_array());
  RETURN_IF_ERROR(tools);
  // Fine-tuning trains on the answers of the history, too, as on those of any conversation
  // (LLaMA-Factory without mask_history).
  if (options.purpose == Purpose::sft && prompt->is_array() && row("history")) {
    prompt->array().push_back(message("assistant", *output));
    return Sample{.completion = std::move(*prompt), .tools = std::move(*tools)};
  }
  Json completion =
      prompt->is_array() ? Json(Json::Array{message("assistant", *output)}) : Json(*output);
  return Sample{.prompt = std::move(*prompt),
                .completion = std::move(completion),
                .tools = std::move(*tools)};
}

// The prompt of a conversation ends before its last answer, which is not read.
Json without_last_answer(const Columns& row, const char* name, Json messages) {
  auto& list = messages.array();
  const auto size = list.size();
  while (!list.empty() && is_assistant(list.back())) list.pop_back();
  if (list.size() < size) row.mark_unread(row.file_name(name) + " (the last answer)");
  return messages;
}

Result<Json> prompt_of(const Columns& row, const LayoutOptions& options, const char* name) {
  if (std::string_view(name) == "instruction") return alpaca_prompt(row, options);
  if (std::string_view(name) != "messages" && std::string_view(name) != "conversations") {
    if (!row(name)) return bad_row(cat("nothing under ", quote(row.file_name(name))));
    const auto value = parsed_column(row, name);
    RETURN_IF_ERROR(value);
    auto out =
        text_or_messages(row, *value, row.file_name(name), "user", options.chat == ChatUse::always);
    RETURN_IF_ERROR(out);
    RETURN_IF_ERROR(add_system(row, options, *out));
    return out;
  }
  auto sample = messages_of(row, options);
  RETURN_IF_ERROR(sample);
  return without_last_answer(row, name, std::move(sample->completion));
}

Result<Sample> prompt_and_answer(const Columns& row, const LayoutOptions& options) {
  const auto* name =
      row.first_name({"prompt", "question", "problem", "instruction", "messages", "conversations"});
  auto prompt = prompt_of(row, options, name);
  RETURN_IF_ERROR(prompt);
  if (prompt->is_array() && prompt->array().empty())
    return bad_row("the prompt has no message before the assistant message");
  auto tools = tools_of(row, prompt->is_array());
  RETURN_IF_ERROR(tools);
  Sample sample{.prompt = std::move(*prompt), .tools = std::move(*tools)};
  const auto* answer = row.first({"answer", "ground_truth", "solution"});
  static const std::map<std::string, std::string> verl = {{"answer", "reward_model.ground_truth"}};
  if (!answer) {
    answer = Columns(row.row(), verl, row.tags()).find("answer");
    if (answer) row.mark_read(verl.at("answer"));
  }
  if (!answer && std::string_view(name) == "instruction") answer = row.find("output");
  if (answer) sample.answer = *answer;
  sample.columns = row.others({name});
  return sample;
}

Result<Sample> dispatch(const Columns& row, const LayoutOptions& options) {
  switch (options.layout) {
    case Layout::token_ids:
      return token_sample(row, options);
    case Layout::messages:
      return conversation(row, options);
    case Layout::prompt_completion:
      return prompt_and_completion(row, "prompt",
                                   row.first_name({"completion", "response", "answer"}), options);
    case Layout::question_answer:
      if (row("problem") && !row("question"))
        return prompt_and_completion(row, "problem", "solution", options);
      return prompt_and_completion(row, "question", "answer", options);
    case Layout::alpaca:
      return alpaca(row, options);
    case Layout::text:
      return text_row(row);
    case Layout::pairwise:
      return pairwise_sample(row, options);
    case Layout::steps:
      return step_sample(row, options);
    case Layout::placeholders:
      return placeholder_sample(row, options);
    case Layout::prm800k:
      return prm800k_sample(row, options);
    case Layout::prompt_answer:
      return prompt_and_answer(row, options);
    case Layout::automatic:
      break;
  }
  return fail(Errc::internal, "the layout of the rows has not been detected");
}

}  // namespace

Result<std::string> system_of(const Columns& row, const LayoutOptions& options) {
  auto column = row.optional_string("system");
  if (column && column->empty()) return options.system;
  return column;
}

Result<> add_system(const Columns& row, const LayoutOptions& options, Json& prompt) {
  const auto system = system_of(row, options);
  RETURN_IF_ERROR(system);
  if (system->empty()) return {};
  if (prompt.is_string()) {
    prompt = Json(cat(*system, "\n\n", prompt.string()));
    return {};
  }
  auto& messages = prompt.array();
  const Json own = message("system", *system);
  if (!messages.empty() && messages.front().find("role") &&
      *messages.front().find("role") == Json("system")) {
    if (messages.front() == own || !row("system")) return {};
    return bad_row(cat("two different system messages: the first message, and the column ",
                       quote(row.file_name("system")),
                       "; remove one of them, or set data.columns.system to \"\""));
  }
  messages.insert(messages.begin(), own);
  return {};
}

Result<Json> alpaca_prompt(const Columns& row, const LayoutOptions& options) {
  const auto instruction = row.string("instruction"), system = system_of(row, options),
             input = row.optional_string(row.first_name({"input", "context"}));  // Dolly's context
  for (const auto* text : {&instruction, &input, &system}) RETURN_IF_ERROR(*text);
  const bool chat = options.chat == ChatUse::always ||
                    (options.chat == ChatUse::automatic && options.chat_template);
  Json::Array messages;
  if (!system->empty()) messages.push_back(message("system", *system));
  // Stanford Alpaca's prompt, for models without a chat template
  // (github.com/tatsu-lab/stanford_alpaca).
  std::string text = !system->empty() ? *system + "\n\n"
                     : input->empty()
                         ? "Below is an instruction that describes a task. Write a response that "
                           "appropriately completes the request.\n\n"
                         : "Below is an instruction that describes a task, paired with an input "
                           "that provides further context. Write a response "
                           "that appropriately completes the request.\n\n";
  if (const auto* history = row.find("history")) {
    if (!history->is_array())
      return bad_row(cat("expected a list of [question, answer] under \"history\", found ",
                         history->type_name()));
    for (const auto& pair : history->array()) {
      if (!pair.is_array() || pair.array().size() != 2 || !pair.array()[0].is_string() ||
          !pair.array()[1].is_string())
        return bad_row(
            cat("expected [question, answer] in \"history\", found ", quote(pair.dump())));
      const auto &question = pair.array()[0].string(), &answer = pair.array()[1].string();
      messages.push_back(message("user", question));
      messages.push_back(message("assistant", answer));
      text += cat("### Instruction:\n", question, "\n\n### Response:\n", answer, "\n\n");
    }
  }
  messages.push_back(
      message("user", input->empty() ? *instruction : cat(*instruction, "\n", *input)));
  if (chat) return Json(std::move(messages));
  text += cat("### Instruction:\n", *instruction, "\n\n");
  if (!input->empty()) text += cat("### Input:\n", *input, "\n\n");
  return Json(text + "### Response:\n");
}

Result<Sample> to_sample(const Row& row, const LayoutOptions& options) {
  const Columns columns(row.value, options.columns, options.tags);
  auto sample = dispatch(columns, options);
  const bool labelled = options.purpose == Purpose::unpaired && options.layout != Layout::pairwise;
  if (labelled) sample = with_label(std::move(sample), columns);
  if (sample) {
    sample->unread = columns.unread();
    if (auto harmless = check_unread(columns, sample->unread); !harmless) sample = fail(harmless);
  }
  if (!sample) return fail(sample.error().code, cat(row.where(), ": ", sample.error().what));
  return sample;
}

}  // namespace troupe::engine::data
