#include "launch/serve/formats/message_tools.h"

#include <utility>

#include "engine/base/text.h"
#include "launch/serve/api/tool_fields.h"

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

}  // namespace

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

}  // namespace troupe::launch::serve::formats
