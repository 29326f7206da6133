#include "launch/serve/api/chat_messages.h"

#include <algorithm>
#include <string_view>

#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

namespace {

std::string joined_parts(const Json::Array& parts, const std::string& where) {
  std::vector<std::string> texts;
  for (const Json& part : parts) {
    const std::string here = cat(where, "[", texts.size(), "]");
    if (part.is_string()) {
      texts.push_back(part.string());
      continue;
    }
    RequestFields fields(part, here + ".");
    const auto type = fields.text("type");
    if (type != "text" && type != "input_text")
      refuse_unsupported(here, cat(here, ": only parts of type text are supported",
                                   type ? cat(", found ", quote(*type)) : ""));
    const auto text = fields.text("text");
    if (!text) refuse(here + ".text", here + ".text is missing");
    texts.push_back(*text);
  }
  return join(texts, "\n");
}

/// Templates write the arguments of a call as an object; requests have its text, as in answers.
void read_arguments(Json& function, const std::string& where) {
  const Json* arguments = function.find("arguments");
  if (arguments == nullptr || !arguments->is_string()) return;
  if (arguments->string().empty()) {
    function.set("arguments", Json::Object{});
    return;
  }
  auto parsed = parse_json(arguments->string(), where + ".arguments");
  if (!parsed) refuse(where + ".arguments", parsed.error().what);
  function.set("arguments", std::move(*parsed));
}

void read_tool_calls(Json& calls, const std::string& where) {
  if (!calls.is_array())
    refuse(where, cat(where, ": expected a list of tool calls, found ", calls.type_name()));
  std::size_t index = 0;
  for (Json& call : calls.array()) {
    const std::string here = cat(where, "[", index++, "]");
    const Json* function = call.find("function");
    const Json* name = function ? function->find("name") : nullptr;
    if (name == nullptr || !name->is_string())
      refuse(here + ".function.name", here + ".function.name is missing");
    Json read = *function;
    read_arguments(read, here + ".function");
    call.set("function", std::move(read));
  }
}

Json read_message(const Json& message, const std::string& where) {
  RequestFields fields(message, where + ".");
  const auto role = fields.text("role");
  if (!role) refuse(where + ".role", where + ".role is missing");
  Json out = message;
  const Json* content = fields.find("content");
  if (content == nullptr) {
    if (role != "assistant") refuse(where + ".content", where + ".content is missing");
    // Templates add the content to their text; a turn of tool calls has none.
    out.set("content", "");
  } else if (content->is_array()) {
    out.set("content", joined_parts(content->array(), where + ".content"));
  } else if (!content->is_string()) {
    refuse(where + ".content", cat(where, ".content: expected a string or a list of parts, found ",
                                   content->type_name()));
  }
  if (const Json* calls = fields.find("tool_calls")) {
    Json read = *calls;
    read_tool_calls(read, where + ".tool_calls");
    out.set("tool_calls", std::move(read));
  }
  return out;
}

/// Variables of the template: chat_template_kwargs, and reasoning_effort as in vLLM.
Json read_variables(RequestFields& fields) {
  Json out;
  if (const Json* kwargs = fields.find("chat_template_kwargs")) {
    if (!kwargs->is_object())
      refuse("chat_template_kwargs",
             cat("chat_template_kwargs: expected an object, found ", kwargs->type_name()));
    out = *kwargs;
  }
  const auto effort = fields.text("reasoning_effort");
  if (!effort) return out;
  constexpr std::string_view efforts[] = {"none", "minimal", "low", "medium",
                                          "high", "xhigh",   "max"};
  if (std::ranges::find(efforts, *effort) == std::ranges::end(efforts))
    refuse("reasoning_effort",
           cat("reasoning_effort: expected none, minimal, low, medium, high, xhigh or max, found ",
               quote(*effort)));
  if (out.is_null()) out = Json::Object{};
  out.set("reasoning_effort", *effort);
  if (out.find("enable_thinking") == nullptr) out.set("enable_thinking", *effort != "none");
  return out;
}

/// The end of a conversation: a new message, or the continued last one.
void read_end(RequestFields& fields, Conversation& conversation) {
  conversation.continues_last = fields.flag("continue_final_message", false);
  conversation.add_generation_prompt =
      fields.flag("add_generation_prompt", !conversation.continues_last);
  if (conversation.continues_last && conversation.add_generation_prompt)
    refuse("continue_final_message",
           "continue_final_message is not allowed with \"add_generation_prompt\": true");
}

}  // namespace

Conversation read_conversation(RequestFields& fields) {
  const Json* messages = fields.find("messages");
  if (messages == nullptr) refuse("messages", "messages is missing");
  if (!messages->is_array() || messages->array().empty())
    refuse("messages", "messages: expected a list of at least one message");
  Json::Array read;
  for (const Json& each : messages->array())
    read.push_back(read_message(each, cat(fields.path("messages"), "[", read.size(), "]")));
  Conversation conversation;
  conversation.messages = std::move(read);
  read_end(fields, conversation);
  conversation.kwargs = read_variables(fields);
  if (const Json* documents = fields.find("documents")) conversation.documents = *documents;
  return conversation;
}

}  // namespace troupe::launch::serve::api
