#include "launch/serve/api/tool_fields.h"

#include <algorithm>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

namespace {

const std::string& function_name(const Json& tool) {
  return tool.find("function")->find("name")->string();
}

void check_tool(const Json& tool, const std::string& where) {
  RequestFields fields(tool, where + ".");
  if (const auto type = fields.text("type"); type && *type != "function")
    refuse_unsupported(where + ".type",
                       cat(where, ".type: only function is supported, found ", quote(*type)));
  const Json* function = fields.find("function");
  if (function == nullptr) refuse(where + ".function", where + ".function is missing");
  RequestFields members(*function, where + ".function.");
  const auto name = members.text("name");
  if (!name || name->empty())
    refuse(members.path("name"), cat(members.path("name"), " is missing or empty"));
  const Json* parameters = members.find("parameters");
  if (parameters != nullptr && !parameters->is_object())
    refuse(members.path("parameters"),
           cat(members.path("parameters"), ": expected a JSON schema, found ",
               parameters->type_name()));
}

Json read_list(RequestFields& fields) {
  const Json* list = fields.find("tools");
  if (list == nullptr || (list->is_array() && list->array().empty())) return nullptr;
  if (!list->is_array() || list->array().size() > max_tools)
    refuse("tools", cat("tools: expected a list of at most ", max_tools, " tools"));
  std::size_t index = 0;
  for (const Json& tool : list->array()) {
    check_tool(tool, cat("tools[", index, "]"));
    ++index;
  }
  return *list;
}

/// The name of a tool of the request, in {"function": {"name": ...}}.
std::string read_tool_name(const Json& choice, const std::string& where, const Json& list) {
  RequestFields fields(choice, where + ".");
  const Json* function = fields.find("function");
  if (fields.text("type") != "function" || function == nullptr)
    refuse(where, cat(where,
                      ": expected none, auto, required, {\"type\": \"function\", "
                      "\"function\": {\"name\": ...}} or allowed_tools"));
  const auto name = RequestFields(*function, where + ".function.").text("name");
  const auto& tools = list.array();
  if (!name || std::ranges::find(tools, *name, function_name) == tools.end())
    refuse(where + ".function.name",
           cat(where, ".function.name: ", name ? quote(*name) : "it is missing",
               "; expected the name of one of the tools"));
  return *name;
}

/// Only the allowed tools are left.
void read_allowed_tools(const Json& choice, Tools& tools) {
  const std::string where = "tool_choice.allowed_tools";
  const Json* described = choice.find("allowed_tools");
  if (described == nullptr) refuse(where, where + " is missing");
  RequestFields fields(*described, where + ".");
  const auto mode = fields.text("mode");
  if (mode != "auto" && mode != "required")
    refuse(where + ".mode", where + ".mode: expected auto or required");
  const Json* list = fields.find("tools");
  if (list == nullptr || !list->is_array() || list->array().empty() ||
      list->array().size() > max_tools)
    refuse(where + ".tools", cat(where, ".tools: expected a list of 1 to ", max_tools, " tools"));
  std::vector<std::string> names;
  for (const Json& each : list->array())
    names.push_back(read_tool_name(each, cat(where, ".tools[", names.size(), "]"), tools.list));
  std::erase_if(tools.list.array(), [&](const Json& tool) {
    return std::ranges::find(names, function_name(tool)) == names.end();
  });
  tools.choice = mode == "auto" ? ToolChoice::automatic : ToolChoice::required;
}

void read_choice(const Json& choice, Tools& tools) {
  if (const Json* type = choice.find("type"); type != nullptr && *type == Json("allowed_tools"))
    return read_allowed_tools(choice, tools);
  if (choice.is_object()) {
    tools.function = read_tool_name(choice, "tool_choice", tools.list);
    tools.choice = ToolChoice::function;
  } else if (choice == Json("none")) {
    tools.choice = ToolChoice::none;
  } else if (choice == Json("required")) {
    tools.choice = ToolChoice::required;
  } else if (choice != Json("auto")) {
    refuse("tool_choice",
           "tool_choice: expected none, auto, required, a function or allowed_tools");
  }
}

/// The parameters of a tool. Their definitions move to `definitions`, as references to them begin
/// at the root of the schema.
Json parameters_of(const Json& tool, Json& definitions) {
  const Json* found = tool.find("function")->find("parameters");
  if (found == nullptr) return Json::Object{{"type", "object"}, {"properties", Json::Object{}}};
  Json parameters = *found;
  std::erase_if(parameters.object(), [&](const auto& member) {
    if (member.first != "$defs" || !member.second.is_object()) return false;
    for (const auto& [name, schema] : member.second.object()) {
      const Json* other = definitions.find(name);
      if (other != nullptr && *other != schema)
        refuse("tools", cat("tools: two tools define ", quote(name), " in $defs differently"));
      definitions.set(name, schema);
    }
    return true;
  });
  return parameters;
}

Json call_schema(const Json& tool, Json& definitions) {
  Json name = Json::Object{{"const", function_name(tool)}};
  return Json::Object{
      {"type", "object"},
      {"properties",
       Json::Object{{"name", std::move(name)}, {"parameters", parameters_of(tool, definitions)}}},
      {"required", Json::Array{"name", "parameters"}}};
}

Json with_definitions(Json schema, Json definitions) {
  if (!definitions.object().empty()) schema.set("$defs", std::move(definitions));
  return schema;
}

Json list_schema(const Tools& tools) {
  Json definitions = Json::Object{};
  Json::Array calls;
  for (const Json& tool : tools.list.array()) calls.push_back(call_schema(tool, definitions));
  Json schema = Json::Object{
      {"type", "array"}, {"items", Json::Object{{"anyOf", std::move(calls)}}}, {"minItems", 1}};
  if (!tools.parallel) schema.set("maxItems", 1);
  return with_definitions(std::move(schema), std::move(definitions));
}

}  // namespace

Tools read_tools(RequestFields& fields) {
  Tools tools{.list = read_list(fields)};
  tools.parallel = fields.flag("parallel_tool_calls", true);
  const Json* choice = fields.find("tool_choice");
  if (tools.list.is_null()) {
    if (choice != nullptr && *choice != Json("none") && *choice != Json("auto"))
      refuse("tool_choice", "tool_choice is allowed only with tools");
    return tools;
  }
  tools.choice = ToolChoice::automatic;
  if (choice != nullptr) read_choice(*choice, tools);
  return tools;
}

std::optional<ConstraintText> tool_constraint(const Tools& tools) {
  if (tools.choice == ToolChoice::required)
    return ConstraintText{ConstraintKind::schema, list_schema(tools), "tools"};
  if (tools.choice != ToolChoice::function) return std::nullopt;
  const Json& tool = *std::ranges::find(tools.list.array(), tools.function, function_name);
  Json definitions = Json::Object{};
  Json parameters = parameters_of(tool, definitions);
  return ConstraintText{ConstraintKind::schema,
                        with_definitions(std::move(parameters), std::move(definitions)), "tools"};
}

}  // namespace troupe::launch::serve::api
