#include "launch/serve/formats/message_blocks.h"

#include <optional>
#include <string>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/formats/translation.h"

namespace troupe::launch::serve::formats {

namespace {

void read_tool_use(api::RequestFields& block, ConversationBuilder& conversation) {
  const std::string id = required_text(block, "id"), name = required_text(block, "name");
  const Json* input = block.find("input");
  if (input == nullptr || !input->is_object())
    api::refuse(block.path("input"), cat(block.path("input"), ": expected an object, found ",
                                         input ? input->type_name() : "nothing"));
  accept_members(block, {"caller"});
  conversation.add_call(id, name, *input);
}

void read_tool_result(api::RequestFields& block, ConversationBuilder& conversation) {
  const std::string id = required_text(block, "tool_use_id");
  const Json* content = block.find("content");
  Json::Object more;
  if (block.flag("is_error", false)) more.emplace_back("is_error", true);
  conversation.add_result(id, content ? text_blocks(*content, block.path("content")) : Json(""),
                          std::move(more));
}

[[noreturn]] void refuse_block(const api::RequestFields& block, const std::string& where,
                               const std::optional<std::string>& type) {
  if (!type) api::refuse(block.path("type"), cat(block.path("type"), " is missing"));
  api::refuse_unsupported(where,
                          cat(where, ": a block of type ", quote(*type),
                              " is not supported here; supported: text, in messages of the user "
                              "tool_result, in those of the assistant thinking and tool_use"));
}

/// Texts between results of calls are collected in `texts`.
void read_user_block(const Json& block, const std::string& where, ConversationBuilder& conversation,
                     Json::Array& texts, api::UnknownFields& unknown) {
  api::RequestFields fields(block, where + ".");
  const auto type = fields.text("type");
  accept_members(fields, {"cache_control", "citations"});
  if (type == "text") {
    texts.push_back(Json::Object{{"type", "text"}, {"text", required_text(fields, "text")}});
  } else if (type == "tool_result") {
    if (!texts.empty()) conversation.add_message("user", std::exchange(texts, {}));
    read_tool_result(fields, conversation);
  } else {
    refuse_block(fields, where, type);
  }
  add_unknown(fields, unknown);
}

void read_assistant_block(const Json& block, const std::string& where,
                          ConversationBuilder& conversation, api::UnknownFields& unknown) {
  api::RequestFields fields(block, where + ".");
  const auto type = fields.text("type");
  accept_members(fields, {"cache_control", "citations"});
  if (type == "text") {
    conversation.add_text(required_text(fields, "text"));
  } else if (type == "thinking") {
    conversation.add_reasoning(required_text(fields, "thinking"));
    accept_members(fields, {"signature"});
  } else if (type == "tool_use") {
    read_tool_use(fields, conversation);
  } else {
    refuse_block(fields, where, type);
  }
  add_unknown(fields, unknown);
}

void read_user(const Json& content, const std::string& where, ConversationBuilder& conversation,
               api::UnknownFields& unknown) {
  if (content.is_string()) return conversation.add_message("user", content);
  Json::Array texts;
  std::size_t index = 0;
  for (const Json& block : content.array())
    read_user_block(block, cat(where, "[", index++, "]"), conversation, texts, unknown);
  if (!texts.empty()) conversation.add_message("user", std::move(texts));
}

void read_assistant(const Json& content, const std::string& where,
                    ConversationBuilder& conversation, api::UnknownFields& unknown) {
  conversation.end_turn();
  if (content.is_string()) return conversation.add_text(content.string());
  std::size_t index = 0;
  for (const Json& block : content.array())
    read_assistant_block(block, cat(where, "[", index++, "]"), conversation, unknown);
  conversation.end_turn();
}

void read_one(const Json& message, const std::string& where, ConversationBuilder& conversation,
              api::UnknownFields& unknown) {
  api::RequestFields fields(message, where + ".");
  const std::string role = required_text(fields, "role");
  const Json* content = fields.find("content");
  const std::string field = fields.path("content");
  if (content == nullptr || (!content->is_string() && !content->is_array()))
    api::refuse(field, cat(field, ": expected a string or a list of blocks, found ",
                           content ? content->type_name() : "nothing"));
  if (content->is_array() && content->array().empty())
    api::refuse(field, cat(field, ": expected at least one block"));
  if (role == "user")
    read_user(*content, field, conversation, unknown);
  else if (role == "assistant")
    read_assistant(*content, field, conversation, unknown);
  else if (role == "system")
    conversation.add_message("system", text_blocks(*content, field));
  else
    api::refuse(fields.path("role"), cat(fields.path("role"), " is ", quote(role),
                                         "; allowed: user, assistant, system"));
  add_unknown(fields, unknown);
}

}  // namespace

Json text_blocks(const Json& content, const std::string& field) {
  return text_content(content, field, {"text"});
}

void read_message_blocks(const Json& messages, ConversationBuilder& conversation,
                         api::UnknownFields& unknown) {
  if (!messages.is_array() || messages.array().empty())
    api::refuse("messages", "messages: expected a list of at least one message");
  std::size_t index = 0;
  for (const Json& message : messages.array())
    read_one(message, cat("messages[", index++, "]"), conversation, unknown);
}

}  // namespace troupe::launch::serve::formats
