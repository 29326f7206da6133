#include "launch/serve/formats/response_request.h"

#include <algorithm>
#include <utility>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/tool_fields.h"
#include "launch/serve/formats/conversation_builder.h"
#include "launch/serve/formats/translation.h"

namespace troupe::launch::serve::formats {

namespace {

/// {"type", "name", "parameters", ..} as {"type", "function": {"name", "parameters", ..}}.
Json function_tool(const Json& tool, const std::string& where, api::UnknownFields& unknown) {
  api::RequestFields fields(tool, where + ".");
  const auto type = fields.text("type");
  if (!type) api::refuse(where + ".type", where + ".type is missing");
  if (*type != "function")
    api::refuse_unsupported(
        where + ".type", cat(where, ".type: ", quote(*type),
                             " is not supported: the server runs no tools; supported: function"));
  const auto name = fields.text("name");
  if (!name || name->empty()) api::refuse(where + ".name", where + ".name is missing or empty");
  Json function = Json::Object{{"name", *name}};
  for (const char* member : {"description", "parameters", "strict"})
    if (const Json* value = fields.find(member)) function.set(member, *value);
  if (const Json* parameters = fields.find("parameters"); parameters && !parameters->is_object())
    api::refuse(where + ".parameters",
                cat(where, ".parameters: expected a JSON schema, found ", parameters->type_name()));
  refuse_member(fields, "defer_loading", "all tools are shown to the model");
  refuse_member(fields, "output_schema", "write it into the description");
  accept_members(fields, {"allowed_callers"});
  add_unknown(fields, unknown);
  return Json::Object{{"type", "function"}, {"function", std::move(function)}};
}

const std::string& function_name(const Json& tool) {
  return tool.find("function")->find("name")->string();
}

/// Leaves the tools that `list` names.
void keep_allowed(const Json& list, Json::Array& tools) {
  const std::string where = "tool_choice.tools";
  if (!list.is_array() || list.array().empty() || list.array().size() > api::max_tools)
    api::refuse(where, cat(where, ": expected a list of 1 to ", api::max_tools, " functions"));
  std::vector<std::string> names;
  for (const Json& each : list.array()) {
    const std::string here = cat(where, "[", names.size(), "]");
    api::RequestFields fields(each, here + ".");
    if (const auto type = fields.text("type"); type != "function")
      api::refuse_unsupported(here + ".type", cat(here, ".type: only function is supported"));
    const auto name = fields.text("name");
    if (!name || std::ranges::find(tools, *name, function_name) == tools.end())
      api::refuse(here + ".name", cat(here, ".name: ", name ? quote(*name) : "it is missing",
                                      "; expected the name of one of the tools"));
    names.push_back(*name);
  }
  std::erase_if(tools, [&](const Json& tool) {
    return std::ranges::find(names, function_name(tool)) == names.end();
  });
}

/// The choice of the chat request.
Json allowed_choice(const Json& choice, Json::Array& tools) {
  if (choice.is_string()) {
    for (const char* known : {"none", "auto", "required"})
      if (choice.string() == known) return choice;
    api::refuse("tool_choice", cat("tool_choice is ", quote(choice.string()),
                                   "; expected none, auto, required or an object with a type"));
  }
  api::RequestFields fields(choice, "tool_choice.");
  const auto type = fields.text("type");
  if (type == "function") {
    const auto name = fields.text("name");
    if (!name) api::refuse("tool_choice.name", "tool_choice.name is missing");
    return Json::Object{{"type", "function"}, {"function", Json::Object{{"name", *name}}}};
  }
  if (type != "allowed_tools")
    api::refuse_unsupported("tool_choice.type",
                            cat("tool_choice.type: ", type ? quote(*type) : "it is missing",
                                "; supported: function, allowed_tools"));
  const auto mode = fields.text("mode");
  if (mode != "auto" && mode != "required")
    api::refuse("tool_choice.mode", "tool_choice.mode: expected auto or required");
  const Json* allowed = fields.find("tools");
  keep_allowed(allowed ? *allowed : Json(), tools);
  return *mode;
}

/// Reads tools, tool_choice and parallel_tool_calls. Tools that OpenAI's servers run are refused by
/// their type; with allowed_tools the model sees the allowed ones only. Throws ApiFailure.
void read_response_tools(api::RequestFields& fields, api::TranslatedRequest& request) {
  const Json* list = fields.find("tools");
  if (list != nullptr && (!list->is_array() || list->array().size() > api::max_tools))
    api::refuse("tools", cat("tools: expected a list of at most ", api::max_tools, " tools"));
  Json::Array tools;
  if (list != nullptr) {
    for (const Json& tool : list->array())
      tools.push_back(function_tool(tool, cat("tools[", tools.size(), "]"), request.unknown));
  }
  const Json* choice = fields.find("tool_choice");
  if (choice != nullptr) request.chat.set("tool_choice", allowed_choice(*choice, tools));
  if (!tools.empty()) request.chat.set("tools", std::move(tools));
  const bool parallel = fields.flag("parallel_tool_calls", true);
  request.chat.set("parallel_tool_calls", parallel);
  request.repeated.set("parallel_tool_calls", parallel)
      .set("tool_choice", choice ? *choice : Json("auto"))
      .set("tools", list ? *list : Json(Json::Array{}));
}

/// An output_text of an earlier answer has annotations and logprobs, which say nothing more.
void read_message(api::RequestFields& item, ConversationBuilder& conversation) {
  const std::string role = required_text(item, "role");
  const Json content = text_content(required_member(item, "content"), item.path("content"),
                                    {"input_text", "output_text", "text"});
  accept_members(item, {"phase"});
  if (role == "assistant") return conversation.add_text(joined_text(content, ""));
  if (role != "user" && role != "system" && role != "developer")
    api::refuse(item.path("role"), cat(item.path("role"), " is ", quote(role),
                                       "; allowed: user, assistant, system, developer"));
  // The templates of open models know no developer.
  conversation.add_message(role == "user" ? "user" : "system", content);
}

void read_call(api::RequestFields& item, ConversationBuilder& conversation) {
  const std::string id = required_text(item, "call_id"), name = required_text(item, "name");
  const std::string text = required_text(item, "arguments");
  const std::string where = item.path("arguments");
  Json arguments = Json::Object{};
  if (!text.empty()) {
    auto parsed = parse_json(text, where);
    if (!parsed) api::refuse(where, parsed.error().what);
    arguments = std::move(*parsed);
  }
  accept_members(item, {"caller"});
  refuse_member(item, "namespace", "functions have none");
  conversation.add_call(id, name, std::move(arguments));
}

void read_call_output(api::RequestFields& item, ConversationBuilder& conversation) {
  const std::string id = required_text(item, "call_id");
  Json output =
      text_content(required_member(item, "output"), item.path("output"), {"input_text", "text"});
  accept_members(item, {"caller", "name"});
  refuse_member(item, "namespace", "functions have none");
  conversation.add_result(id, std::move(output));
}

/// The reasoning itself, or a summary where there is none.
void read_reasoning(api::RequestFields& item, ConversationBuilder& conversation) {
  std::string text;
  if (const Json* content = item.find("content"))
    text =
        joined_text(text_content(*content, item.path("content"), {"reasoning_text", "text"}), "");
  if (const Json* summary = item.find("summary"); summary != nullptr) {
    const Json parts = text_content(*summary, item.path("summary"), {"summary_text"});
    if (text.empty()) text = joined_text(parts, "\n");
  }
  const auto encrypted = item.text("encrypted_content");
  if (text.empty() && encrypted.value_or("") != "")
    api::refuse_unsupported(
        item.path("encrypted_content"),
        cat(item.path("encrypted_content"),
            " is not supported: the server has no key for it; send the reasoning "
            "as content"));
  conversation.add_reasoning(text);
}

void read_item(const Json& item, const std::string& where, ConversationBuilder& conversation,
               api::UnknownFields& unknown) {
  api::RequestFields fields(item, where + ".");
  const auto type = fields.text("type");
  accept_members(fields, {"id", "status"});
  if (type == "message" || (!type && fields.find("role") != nullptr))
    read_message(fields, conversation);
  else if (type == "function_call")
    read_call(fields, conversation);
  else if (type == "function_call_output")
    read_call_output(fields, conversation);
  else if (type == "reasoning")
    read_reasoning(fields, conversation);
  else if (!type)
    api::refuse(where + ".type", cat(where, ".type is missing"));
  else
    api::refuse_unsupported(where + ".type",
                            cat(where, ".type: ", quote(*type),
                                " is not supported; supported: message, function_call, "
                                "function_call_output, reasoning"));
  add_unknown(fields, unknown);
}

/// Reads a text or a list of items: messages (role and content), function_call,
/// function_call_output and reasoning. Members without a meaning here are added to `unknown`.
/// Throws ApiFailure; for other items, whose content the server does not have, by their type.
void read_input(const Json& input, ConversationBuilder& conversation, api::UnknownFields& unknown) {
  if (input.is_string()) return conversation.add_message("user", input);
  if (!input.is_array())
    api::refuse("input",
                cat("input: expected a string or a list of items, found ", input.type_name()));
  if (input.array().empty()) api::refuse("input", "input: expected a list of at least one item");
  std::size_t index = 0;
  for (const Json& item : input.array())
    read_item(item, cat("input[", index++, "]"), conversation, unknown);
}

// Of the OpenAI API.
constexpr std::size_t max_pairs = 16, max_pair_key = 64, max_pair_value = 512;

constexpr api::FieldName response_names[] = {{"messages", "input"},
                                             {"max_completion_tokens", "max_output_tokens"},
                                             {"max_tokens", "max_output_tokens"},
                                             {"response_format.json_schema", "text.format"},
                                             {"response_format", "text.format"},
                                             {"reasoning_effort", "reasoning.effort"},
                                             {"tool_choice.function", "tool_choice"}};

/// The format of the text as the chat request has it.
Json response_format(const Json& format) {
  api::RequestFields members(format, "text.format.");
  const auto type = members.text("type");
  if (type == "text" || type == "json_object") return Json::Object{{"type", *type}};
  if (type != "json_schema")
    api::refuse_unsupported("text.format.type",
                            "text.format.type: expected text, json_object or json_schema");
  Json described = Json::Object{};
  for (const char* name : {"name", "description", "schema", "strict"})
    if (const Json* value = members.find(name)) described.set(name, *value);
  if (members.find("schema") == nullptr)
    api::refuse("text.format.schema", "text.format.schema is missing");
  return Json::Object{{"type", "json_schema"}, {"json_schema", std::move(described)}};
}

void read_text_format(api::RequestFields& fields, api::TranslatedRequest& request) {
  Json format = Json::Object{{"type", "text"}};
  if (const Json* text = fields.find("text")) {
    api::RequestFields members(*text, "text.");
    if (const auto verbosity = members.text("verbosity"); verbosity && *verbosity != "medium")
      api::refuse_unsupported("text.verbosity", "text.verbosity: only medium is supported");
    if (const Json* given = members.find("format")) {
      request.chat.set("response_format", response_format(*given));
      format = *given;
    }
    add_unknown(members, request.unknown);
  }
  request.repeated.set("text", Json::Object{{"format", std::move(format)}});
}

/// The reasoning is part of the output as it is, so that summaries are without effect.
void read_reasoning(api::RequestFields& fields, api::TranslatedRequest& request) {
  Json effort;
  if (const Json* reasoning = fields.find("reasoning")) {
    api::RequestFields members(*reasoning, "reasoning.");
    if (const auto text = members.text("effort")) {
      request.chat.set("reasoning_effort", *text);
      effort = *text;
    }
    accept_members(members, {"summary", "generate_summary"});
    add_unknown(members, request.unknown);
  }
  request.repeated.set("reasoning", Json::Object{{"effort", effort}, {"summary", nullptr}});
}

/// Of items that never occur here, or have their content without being asked.
void read_include(api::RequestFields& fields) {
  const Json* include = fields.find("include");
  if (include == nullptr) return;
  if (!include->is_array())
    api::refuse("include", cat("include: expected a list, found ", include->type_name()));
  for (const Json& each : include->array()) {
    if (!each.is_string()) api::refuse("include", "include: expected a list of strings");
    if (each.string() == "message.output_text.logprobs")
      api::refuse_unsupported(
          "include",
          "include: message.output_text.logprobs is not supported; use logprobs of "
          "/v1/chat/completions");
  }
}

void read_metadata(api::RequestFields& fields, api::TranslatedRequest& request) {
  const Json* metadata = fields.find("metadata");
  if (metadata != nullptr && !metadata->is_object())
    api::refuse("metadata", cat("metadata: expected an object, found ", metadata->type_name()));
  const bool fits = metadata == nullptr ||
                    (metadata->object().size() <= max_pairs &&
                     std::ranges::all_of(metadata->object(), [](const auto& pair) {
                       return pair.first.size() <= max_pair_key && pair.second.is_string() &&
                              pair.second.string().size() <= max_pair_value;
                     }));
  if (!fits)
    api::refuse("metadata", cat("metadata: expected at most ", max_pairs, " texts of at most ",
                                max_pair_value, " bytes, with names of at most ", max_pair_key));
  request.repeated.set("metadata", metadata ? *metadata : Json(Json::Object{}));
}

void read_others(api::RequestFields& fields, api::TranslatedRequest& request) {
  if (const auto most = fields.integer("max_output_tokens", 1, 1 << 30)) {
    request.chat.set("max_completion_tokens", *most);
    request.repeated.set("max_output_tokens", *most);
  } else {
    request.repeated.set("max_output_tokens", nullptr);
  }
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key"}) {
    const auto text = fields.text(name);
    request.repeated.set(name, text ? Json(*text) : Json());
  }
  if (const Json* options = fields.find("stream_options")) {
    api::RequestFields members(*options, "stream_options.");
    accept_members(members,
                   {"include_obfuscation"});  // padding against observers of encrypted streams
    add_unknown(members, request.unknown);
  }
}

}  // namespace

std::span<const api::FieldName> response_field_names() {
  return response_names;
}

api::TranslatedRequest read_response_request(const Json& body) {
  api::RequestFields fields(body, api::fields_of("/v1/responses"));
  api::TranslatedRequest request;
  ConversationBuilder conversation;
  const auto instructions = fields.text("instructions");
  if (instructions) conversation.add_message("system", *instructions);
  request.repeated.set("instructions", instructions ? Json(*instructions) : Json());
  const Json* input = fields.find("input");
  if (input == nullptr) api::refuse("input", "input is missing");
  read_input(*input, conversation, request.unknown);
  request.chat.set("messages", conversation.take());
  read_text_format(fields, request);
  read_reasoning(fields, request);
  read_include(fields);
  read_response_tools(fields, request);
  drop_format_beside_call(request.chat);
  read_metadata(fields, request);
  read_others(fields, request);
  pass_fields(fields, {"stop", "include_reasoning", "chat_template_kwargs", "documents"},
              request.chat);
  pass_sampling(fields, request.chat);
  add_unknown(fields, request.unknown);
  return request;
}

}  // namespace troupe::launch::serve::formats
