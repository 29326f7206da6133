#include "launch/serve/formats/message_request.h"

#include <utility>

#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/tool_fields.h"
#include "launch/serve/formats/message_blocks.h"
#include "launch/serve/formats/translation.h"

namespace troupe::launch::serve::formats {

namespace {

/// {"name", "description", "input_schema"} as {"type", "function": {"name", .., "parameters"}}.
Json custom_tool(const Json& tool, const std::string& where, api::UnknownFields& unknown) {
  api::RequestFields fields(tool, where + ".");
  const auto type = fields.text("type");
  if (type && *type != "custom")
    api::refuse_unsupported(where + ".type", cat(where, ".type: ", quote(*type),
                                                 " is not supported: the server runs no tools and "
                                                 "defines none; supported: custom"));
  const auto name = fields.text("name");
  if (!name || name->empty()) api::refuse(where + ".name", where + ".name is missing or empty");
  const Json* schema = fields.find("input_schema");
  if (schema == nullptr || !schema->is_object())
    api::refuse(where + ".input_schema", cat(where, ".input_schema: expected a JSON schema, found ",
                                             schema ? schema->type_name() : "nothing"));
  Json function = Json::Object{{"name", *name}};
  if (const auto description = fields.text("description"))
    function.set("description", *description);
  function.set("parameters", *schema);
  if (const Json* strict = fields.find("strict")) function.set("strict", *strict);
  refuse_member(fields, "defer_loading", "all tools are shown to the model");
  refuse_member(fields, "input_examples", "write them into the description");
  accept_members(fields, {"cache_control", "eager_input_streaming", "allowed_callers"});
  add_unknown(fields, unknown);
  return Json::Object{{"type", "function"}, {"function", std::move(function)}};
}

Json chat_choice(api::RequestFields& choice) {
  const auto type = choice.text("type");
  if (type == "auto" || type == "none") return *type;
  if (type == "any") return "required";
  if (type != "tool")
    api::refuse("tool_choice.type", cat("tool_choice.type: ", type ? quote(*type) : "it is missing",
                                        "; expected auto, any, tool or none"));
  const auto name = choice.text("name");
  if (!name) api::refuse("tool_choice.name", "tool_choice.name is missing");
  return Json::Object{{"type", "function"}, {"function", Json::Object{{"name", *name}}}};
}

/// Reads tools and tool_choice. Tools of Anthropic's servers and those whose schema only their
/// models know are refused by their type. Throws ApiFailure.
void read_message_tools(api::RequestFields& fields, api::TranslatedRequest& request) {
  if (const Json* list = fields.find("tools")) {
    if (!list->is_array() || list->array().size() > api::max_tools)
      api::refuse("tools", cat("tools: expected a list of at most ", api::max_tools, " tools"));
    Json::Array tools;
    for (const Json& tool : list->array())
      tools.push_back(custom_tool(tool, cat("tools[", tools.size(), "]"), request.unknown));
    if (!tools.empty()) request.chat.set("tools", std::move(tools));
  }
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr) return;
  api::RequestFields members(*choice, "tool_choice.");
  request.chat.set("tool_choice", chat_choice(members));
  request.chat.set("parallel_tool_calls", !members.flag("disable_parallel_tool_use", false));
  add_unknown(members, request.unknown);
}

constexpr api::FieldName message_names[] = {{"max_completion_tokens", "max_tokens"},
                                            {"response_format.json_schema", "output_config.format"},
                                            {"reasoning_effort", "output_config.effort"},
                                            {"tool_choice.function", "tool_choice"},
                                            {"stop", "stop_sequences"}};

/// Whether the template lets the model think; the reasoning then has its own blocks. The budget is
/// without effect: max_tokens bounds reasoning and text together.
void read_thinking(api::RequestFields& fields, const api::ServedModel& model,
                   api::TranslatedRequest& request) {
  const Json* thinking = fields.find("thinking");
  if (thinking == nullptr) return;
  api::RequestFields members(*thinking, "thinking.");
  const auto type = members.text("type");
  members.integer("budget_tokens", 1, 1 << 30);
  if (const auto display = members.text("display"); display == "omitted")
    api::refuse_unsupported("thinking.display", "thinking.display: omitted is not supported");
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    api::refuse_unsupported("thinking.type",
                            cat("thinking.type: ", type ? quote(*type) : "it is missing",
                                "; supported: enabled, disabled, adaptive"));
  if (type == "enabled" && model.reasoning_format() == api::ReasoningFormat::none)
    api::refuse_unsupported("thinking",
                            "thinking: the server cannot tell reasoning from text; start it "
                            "with --reasoning-parser");
  if (type == "adaptive") return;
  const Json* given = request.chat.find("chat_template_kwargs");
  if (given != nullptr && !given->is_object()) return;  // which the chat request refuses
  Json kwargs = given != nullptr ? *given : Json(Json::Object{});
  if (kwargs.find("enable_thinking") == nullptr) kwargs.set("enable_thinking", type == "enabled");
  request.chat.set("chat_template_kwargs", std::move(kwargs));
}

void read_output_config(api::RequestFields& fields, api::TranslatedRequest& request) {
  const Json* config = fields.find("output_config");
  if (config == nullptr) return;
  api::RequestFields members(*config, "output_config.");
  if (const auto effort = members.text("effort")) request.chat.set("reasoning_effort", *effort);
  if (const Json* format = members.find("format")) {
    api::RequestFields inner(*format, "output_config.format.");
    if (inner.text("type") != "json_schema")
      api::refuse_unsupported(inner.path("type"),
                              "output_config.format.type: expected json_schema");
    const Json* schema = inner.find("schema");
    if (schema == nullptr)
      api::refuse(inner.path("schema"), cat(inner.path("schema"), " is missing"));
    Json described = Json::Object{{"name", "output"}, {"schema", *schema}};
    request.chat.set("response_format",
                     Json::Object{{"type", "json_schema"}, {"json_schema", std::move(described)}});
  }
  refuse_member(members, "task_budget", "max_tokens bounds the answer");
  add_unknown(members, request.unknown);
}

void read_conversation_of(api::RequestFields& fields, api::TranslatedRequest& request) {
  ConversationBuilder conversation;
  if (const Json* system = fields.find("system"))
    conversation.add_message("system", text_blocks(*system, "system"));
  const Json* messages = fields.find("messages");
  if (messages == nullptr) api::refuse("messages", "messages is missing");
  read_message_blocks(*messages, conversation, request.unknown);
  if (conversation.ends_with_assistant())
    api::refuse_unsupported(
        "messages",
        "messages: the last one is the assistant's; an answer is a new message and "
        "continues no other");
  request.chat.set("messages", conversation.take());
}

void read_sampling_of(api::RequestFields& fields, api::TranslatedRequest& request) {
  pass_sampling(fields, request.chat);
  const auto most = fields.integer("max_tokens", 1, 1 << 30);
  if (!most) api::refuse("max_tokens", "max_tokens is missing");
  request.chat.set("max_completion_tokens", *most);
  const Json* stops = fields.find("stop_sequences");
  if (stops == nullptr) return;
  if (!stops->is_array())
    api::refuse("stop_sequences",
                cat("stop_sequences: expected a list of strings, found ", stops->type_name()));
  request.chat.set("stop", *stops);
}

}  // namespace

std::span<const api::FieldName> message_field_names() {
  return message_names;
}

api::TranslatedRequest read_message_request(const Json& body, const api::ServedModel& model,
                                            bool counts) {
  api::RequestFields fields(body,
                            api::fields_of(counts ? "/v1/messages/count_tokens" : "/v1/messages"));
  api::TranslatedRequest request;
  read_conversation_of(fields, request);
  pass_fields(fields, {"chat_template_kwargs", "documents"}, request.chat);
  if (counts)
    pass_fields(fields, {"add_special_tokens"}, request.chat);
  else
    read_sampling_of(fields, request);
  read_thinking(fields, model, request);
  read_output_config(fields, request);
  read_message_tools(fields, request);
  drop_format_beside_call(request.chat);
  add_unknown(fields, request.unknown);
  return request;
}

}  // namespace troupe::launch::serve::formats
