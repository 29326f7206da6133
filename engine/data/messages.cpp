#include "engine/data/messages.h"

#include <array>

#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

tl::unexpected<Error> bad(std::string what) { return fail(Errc::bad_input, std::move(what)); }

std::string role_name(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> sharegpt = {
      {{"human", "user"}, {"gpt", "assistant"}, {"observation", "tool"}, {"function_call", "assistant"}, {"bot", "assistant"}}};
  for (const auto& [from, role] : sharegpt)
    if (name == from) return std::string(role);
  return name;
}

Result<std::string> content_text(const Json& content) {
  if (content.is_string()) return content.string();
  if (content.is_null()) return std::string();
  if (!content.is_array()) return bad(cat("expected text as the content of a message, found ", content.type_name()));
  std::string text;
  for (const auto& part : content.array()) {
    const auto* type = part.find("type");
    if (type && *type != Json("text")) return bad(cat("only text is read, found a part of type ", quote(type->dump())));
    const auto* value = part.find("text");
    if (!value) value = part.find("value");
    if (!value || !value->is_string()) return bad("expected {\"type\": \"text\", \"text\": ...} as a part of a message's content");
    text += value->string();
  }
  return text;
}

// ShareGPT writes a call as text; templates want it as tool_calls.
void add_call(Json& out, const std::string& text) {
  const auto call = parse_json(text, "");
  const auto* name = call ? call->find("name") : nullptr;
  const auto* arguments = call ? call->find("arguments") : nullptr;
  if (!name || !arguments) return;
  Json function;
  function.set("name", *name), function.set("arguments", *arguments);
  Json entry;
  entry.set("type", "function"), entry.set("function", std::move(function));
  out.set("content", ""), out.set("tool_calls", Json::Array{std::move(entry)});
}

Result<Json> to_message(const Json& item) {
  const auto* role = item.find("role");
  if (!role) role = item.find("from");
  if (!role || !role->is_string())
    return bad("expected a message ({\"role\": ..., \"content\": ...})" + cat(", found ", quote(item.dump())));
  const auto* content = item.find("content");
  if (!content) content = item.find("value");
  if (!content && !item.find("tool_calls")) return bad(cat("a message of role ", quote(role->string()), " has no content"));
  auto text = content ? content_text(*content) : std::string();
  if (!text) return fail(text.error());
  Json out = message(role_name(role->string()), *text);
  for (const auto& [key, value] : item.object())
    if (key != "role" && key != "from" && key != "content" && key != "value") out.set(key, value);
  if (role->string() == "function_call") add_call(out, *text);
  return out;
}

}  // namespace

Json message(std::string_view role, std::string text) {
  Json::Object members;
  members.emplace_back("role", Json(role));
  members.emplace_back("content", Json(std::move(text)));
  return Json(std::move(members));
}

Result<Json> to_messages(const Json& list) {
  if (list.is_object()) return to_messages(Json(Json::Array{list}));
  if (!list.is_array() || list.array().empty())
    return bad(cat("expected a list of messages, found ", list.is_array() ? "an empty one" : list.type_name()));
  Json::Array out;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    auto item = to_message(list.array()[i]);
    if (!item) return bad(cat("message ", i + 1, ": ", item.error().what));
    out.push_back(std::move(*item));
  }
  return Json(std::move(out));
}

Result<Json> to_tools(const Json* tools) {
  if (!tools || tools->is_null()) return Json();
  if (tools->is_array()) return tools->array().empty() ? Json() : *tools;
  if (!tools->is_string()) return bad(cat("expected a list of tools, found ", tools->type_name()));
  if (tools->string().find_first_not_of(" \t\r\n") == std::string::npos) return Json();
  auto parsed = parse_json(tools->string(), "the text under \"tools\"");
  if (!parsed) return parsed;
  return to_tools(&*parsed);
}

bool is_assistant(const Json& message) {
  const auto* role = message.find("role");
  return role && role->is_string() && role->string() == "assistant";
}

}  // namespace troupe::engine::data
