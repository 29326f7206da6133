#include "launch/serve/formats/response_tools.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "launch/serve/api/tool_fields.h"

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

}  // namespace

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

}  // namespace troupe::launch::serve::formats
