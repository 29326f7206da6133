#include "launch/serve/formats/response_request.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/formats/input_items.h"
#include "launch/serve/formats/response_tools.h"

namespace troupe::launch::serve::formats {

namespace {

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
