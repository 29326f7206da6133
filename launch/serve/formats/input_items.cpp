#include "launch/serve/formats/input_items.h"

#include <utility>

#include "engine/base/text.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/formats/translation.h"

namespace troupe::launch::serve::formats {

namespace {

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

}  // namespace

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

}  // namespace troupe::launch::serve::formats
