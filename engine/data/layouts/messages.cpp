#include "engine/data/layouts/messages.h"

#include <algorithm>
#include <array>
#include <optional>

#include "engine/base/text/text.h"
#include "engine/data/readers/exact_json.h"

namespace troupe::engine::data {
namespace {

constexpr std::string_view call = "function_call";

// The role under Hugging Face's name; a message that calls a tool is "function_call".
std::string role_name(const std::string& name, const Tags& tags) {
  constexpr std::array<std::pair<const char*, std::string_view>, 5> tagged = {
      {{"user_tag", "user"},
       {"assistant_tag", "assistant"},
       {"system_tag", "system"},
       {"observation_tag", "tool"},
       {"function_tag", call}}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> known = {
      {{"human", "user"},
       {"gpt", "assistant"},
       {"model", "assistant"},
       {"chatbot", "assistant"},
       {"bot", "assistant"},
       {"observation", "tool"},
       {"function", "tool"}}};
  for (const auto& [tag, role] : tagged)
    if (const auto found = tags.find(tag); found != tags.end() && found->second == name)
      return std::string(role);
  for (const auto& [from, role] : known)
    if (name == from) return std::string(role);
  return name;
}

const Json* member(const Json& item, const Tags& tags, const char* tag, const char* plain,
                   const char* sharegpt) {
  if (const auto named = tags.find(tag); named != tags.end()) return item.find(named->second);
  const auto* found = item.find(plain);
  return found ? found : item.find(sharegpt);
}

// The text of a content. Members of its parts that are no text are added to `others`, under
// "content.NAME".
Result<std::string> content_text(const Json& content, Json::Object& others) {
  if (content.is_string()) return content.string();
  if (content.is_null()) return std::string();
  if (!content.is_array()) return bad_row(cat("expected text, found ", content.type_name()));
  std::string text;
  for (const auto& part : content.array()) {
    const auto* type = part.find("type");
    if (type && *type != Json("text"))
      return bad_row(cat("only text is read, found a part of type ", quote(type->dump())));
    const auto* value = part.find("text");
    if (!value) value = part.find("value");
    if (!value || !value->is_string())
      return bad_row(
          "expected {\"type\": \"text\", \"text\": ...} as a part of a message's content");
    text += value->string();
    for (const auto& [name, member] : part.object())
      if (&member != type && &member != value) others.emplace_back("content." + name, member);
  }
  return text;
}

// {"name", "arguments", ...} with arguments as an object, where they are JSON text: that is what
// APIs send; templates want the object. Nullopt: it is no call.
std::optional<Json> called_function(const Json& function) {
  const auto* name = function.find("name");
  const auto* arguments = function.find("arguments");
  if (!name || !name->is_string() || !arguments) return std::nullopt;
  Json out = function;
  if (!arguments->is_string()) return out;
  auto parsed = parse_exact_json(arguments->string(), "", {}, true);
  if (parsed && parsed->is_object()) out.set("arguments", std::move(*parsed));
  return out;
}

// An entry of tool_calls: {"type", "function", "id"...}, or the function alone.
std::optional<Json> call_entry(const Json& item) {
  const auto* inside = item.find("function");
  auto function = called_function(inside ? *inside : item);
  if (!function) return std::nullopt;
  const auto* type = item.find("type");
  Json::Object entry, rest;  // the id of a function alone is that of its entry
  if (const auto* id = item.find("id")) entry.emplace_back("id", *id);
  entry.emplace_back("type", type && inside ? *type : Json("function"));
  for (const auto& [key, value] : inside ? item.object() : function->object())
    if (key != "id" && (!inside || (key != "type" && key != "function")))
      rest.emplace_back(key, value);
  if (!inside) function = Json(std::move(rest));
  entry.emplace_back("function", std::move(*function));
  if (inside) entry.insert(entry.end(), rest.begin(), rest.end());
  return Json(std::move(entry));
}

// One call, a list of them, or the text of either. Nullopt: it is none.
std::optional<Json::Array> call_entries(const Json& value) {
  if (value.is_string()) {
    const auto parsed = parse_exact_json(value.string(), "", {}, true);
    return parsed && !parsed->is_string() ? call_entries(*parsed) : std::nullopt;
  }
  Json::Array out;
  for (const auto& item : value.is_array() ? value.array() : Json::Array{value}) {
    auto entry = call_entry(item);
    if (!entry) return std::nullopt;
    out.push_back(std::move(*entry));
  }
  if (out.empty()) return std::nullopt;
  return out;
}

// The calls of a member of a message: tool_calls, or the older function_call.
Result<> add_calls(Json& out, const Json& message, const char* name) {
  const Json* calls = message.find(name);
  const bool none = !calls || calls->is_null() || (calls->is_array() && calls->array().empty()) ||
                    (calls->is_string() && calls->string().empty());
  if (none) return {};
  auto entries = call_entries(*calls);
  const auto is_object = [](const Json& each) { return each.is_object(); };
  if (!entries && calls->is_array() && std::ranges::all_of(calls->array(), is_object))
    entries = calls->array();  // of another form, which a template may know
  if (!entries)
    return bad_row(cat("expected calls ({\"name\": ..., \"arguments\": ...}) under ", quote(name),
                       ", found ", quote(calls->dump(), 60)));
  out.set("tool_calls", std::move(*entries));
  return {};
}

// Members with a weight: of LLaMA-Factory, OpenAI and Mistral, axolotl.
bool is_weight_member(std::string_view key) {
  return key == "loss_weight" || key == "weight" || key == "train" || key == "training";
}

// Sets the weight of a message in the loss, where it is not that of its role.
Result<> set_weight(const Json& item, Json& out) {
  std::optional<double> weight;
  for (const auto& [key, value] : item.object()) {
    if (key == "train_detail" || key == "training_detail")
      return bad_row(cat(quote(key), ": training on parts of a message is not supported"));
    if (!is_weight_member(key) || value.is_null()) continue;
    const bool number = value.is_number() && value.number() >= 0 && value.number() <= 1e6;
    if (!number && !value.is_bool())
      return bad_row(cat("expected a number of at least 0, or true or false, under ", quote(key),
                         ", found ", quote(value.dump(), 24)));
    const double found = number ? value.number() : value.boolean() ? 1 : 0;
    if (weight && *weight != found)
      return bad_row(cat("two different weights of a message, ", *weight, " and ", found));
    weight = found;
  }
  if (!weight) return {};
  if (is_assistant(out)) out.set("loss_weight", *weight);
  if (!is_assistant(out) && *weight != 0)
    return bad_row(cat("weight ", *weight, " of a message of the role ",
                       quote(out.find("role")->string()),
                       ": only messages of the assistant are trained on"));
  return {};
}

Result<Json> to_message(const Json& item, const Tags& tags) {
  const auto *role = member(item, tags, "role_tag", "role", "from"),
             *content = member(item, tags, "content_tag", "content", "value");
  if (!role || !role->is_string())
    return bad_row(
        "expected a message ({\"role\": ..., \"content\": ...} or {\"from\": ..., \"value\": "
        "...})" +
        cat(", found ", quote(item.dump())));
  const auto *calls = item.find("tool_calls"), *old_call = item.find("function_call");
  if (!content && !calls && !old_call)
    return bad_row(cat("a message of role ", quote(role->string()),
                       " has no content (\"content\" or \"value\")"));
  Json::Object others;
  auto text = content ? content_text(*content, others) : std::string();
  if (!text)
    return bad_row(
        cat(quote(item.find("content") == content ? "content" : "value"), ": ", text.error().what));
  const auto name = role_name(role->string(), tags);
  Json out = message(name == call ? "assistant" : name, *text);
  for (const auto& [key, value] : item.object()) {
    if (&value == role || &value == content || key == "tool_calls" || key == "function_call" ||
        is_weight_member(key))
      continue;
    if (key == "role" || key == "content")
      return bad_row(cat("a message has ", quote(key), " beside the member that data.tags names"));
    out.set(key, value);
  }
  for (auto& [key, value] : others) out.set(key, std::move(value));
  RETURN_IF_ERROR(set_weight(item, out));
  if (auto entries = name == call ? call_entries(Json(*text)) : std::nullopt) {
    out.set("content", "");  // a message whose text is a call has no other content
    out.set("tool_calls", std::move(*entries));
  }
  RETURN_IF_ERROR(add_calls(out, item, "function_call"));
  RETURN_IF_ERROR(add_calls(out, item, "tool_calls"));
  return out;
}

}  // namespace

Json message(std::string_view role, std::string text) {
  Json::Object members;
  members.emplace_back("role", Json(role));
  members.emplace_back("content", Json(std::move(text)));
  return Json(std::move(members));
}

Result<Json> to_messages(const Json& list, const Tags& tags) {
  if (list.is_object()) return to_messages(Json(Json::Array{list}), tags);
  if (!list.is_array() || list.array().empty())
    return bad_row(cat("expected a list of messages, found ",
                       list.is_array() ? "an empty one" : list.type_name()));
  Json::Array out;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    auto item = to_message(list.array()[i], tags);
    if (!item) return bad_row(cat("message ", i + 1, ": ", item.error().what));
    out.push_back(std::move(*item));
  }
  return Json(std::move(out));
}

Result<Json> parsed_messages(const Json& value, const Tags& tags) {
  if (!value.is_string()) return value;
  const std::string& text = value.string();
  const auto skip = [&](std::size_t from) { return text.find_first_not_of(" \t\r\n", from); };
  const auto begin = skip(0);
  if (begin == text.npos || text[begin] != '[') return value;
  const auto brace = skip(begin + 1);
  const auto mark = brace != text.npos && text[brace] == '{' ? skip(brace + 1) : text.npos;
  if (mark == text.npos || (text[mark] != '"' && text[mark] != '\'')) return value;
  const std::string name = text.substr(mark + 1, text.find(text[mark], mark + 1) - mark - 1);
  const auto is_member = [&](const char* tag, const char* plain, const char* sharegpt) {
    const auto named = tags.find(tag);
    return named != tags.end() ? name == named->second : name == plain || name == sharegpt;
  };
  const bool begins =
      is_member("role_tag", "role", "from") || is_member("content_tag", "content", "value");
  auto parsed = parse_exact_json(text, "the text");
  if (!parsed && begins)
    return bad_row(
        cat("expected text, or messages as a list or its JSON text; found text that "
            "begins as a list of messages and is no JSON (",
            parsed.error().what, "): ", quote(text, 60),
            ". Python's notation has to be rewritten with json.dumps"));
  const bool messages =
      parsed && std::ranges::all_of(parsed->array(), [&](const Json& item) {
        return item.is_object() && member(item, tags, "role_tag", "role", "from") &&
               (member(item, tags, "content_tag", "content", "value") || item.find("tool_calls"));
      });
  return messages ? *parsed : value;
}

namespace {

// A tool, or its parameters, that is given as JSON text, as the value; other texts as they are.
void parse_text(Json& value) {
  if (!value.is_string()) return;
  auto parsed = parse_exact_json(value.string(), "", {}, true);
  if (parsed && parsed->is_object()) value = std::move(*parsed);
}

Json parsed_tools(const Json& list) {
  Json out = list;
  for (Json& tool : out.array()) {
    parse_text(tool);
    if (!tool.is_object()) continue;
    for (auto& [name, value] : tool.object()) {
      if (name == "function" || name == "parameters") parse_text(value);
      if (name != "function" || !value.is_object()) continue;
      for (auto& [key, inner] : value.object())
        if (key == "parameters") parse_text(inner);
    }
  }
  return out;
}

}  // namespace

Result<Json> to_tools(const Json* tools) {
  if (!tools || tools->is_null()) return Json();
  if (tools->is_array()) return tools->array().empty() ? Json() : parsed_tools(*tools);
  if (!tools->is_string())
    return bad_row(cat("expected a list of tools, found ", tools->type_name()));
  if (tools->string().find_first_not_of(" \t\r\n") == std::string::npos) return Json();
  auto parsed = parse_exact_json(tools->string(), "the text under \"tools\"", {}, true);
  if (!parsed) return parsed;
  return to_tools(&*parsed);
}

bool is_assistant(const Json& message) {
  const auto* role = message.find("role");
  return role && role->is_string() && role->string() == "assistant";
}

}  // namespace troupe::engine::data
