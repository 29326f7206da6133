#include "engine/data/layouts/shown.h"

#include <algorithm>
#include <array>
#include <set>

#include "engine/base/text/text.h"
#include "engine/data/layouts/columns.h"

namespace troupe::engine::data {
namespace {

constexpr std::array<std::string_view, 3> reasoning_names{"reasoning_content", "thinking",
                                                          "reasoning"};

bool is_reasoning(std::string_view name) {
  return std::ranges::find(reasoning_names, name) != reasoning_names.end();
}

// The message without the members that `leaves_out` names.
template <class F>
Json without(const Json& message, F leaves_out) {
  Json::Object members;
  for (const auto& [name, value] : message.object())
    if (!leaves_out(name)) members.emplace_back(name, value);
  return Json(std::move(members));
}

bool has_calls(const Json& message) {
  const Json* calls = message.find("tool_calls");
  return calls && calls->is_array() && !calls->array().empty();
}

// Whether the conversation renders as the same text; a template that refuses it does not.
bool renders_as(const std::string& text, const Json& messages, const Json& tools,
                bool add_generation_prompt, const TextEncoder& encoder) {
  const auto other = encoder.render_chat(messages, add_generation_prompt, tools);
  return other && other->text == text;
}

// Members that other checks are about, or that are no part of the text.
bool is_other(std::string_view name) {
  return name != "role" && name != "content" && name != "tool_calls" && name != "loss_weight" &&
         !is_reasoning(name);
}

}  // namespace

const std::string* reasoning_of(const Json& message) {
  for (const auto name : reasoning_names)
    if (const Json* found = message.find(name))
      if (found->is_string() && !found->string().empty()) return &found->string();
  return nullptr;
}

Result<> check_tools_shown(const Json& messages, const Json& tools, const std::string& text,
                           bool add_generation_prompt, const TextEncoder& encoder) {
  if (!tools.is_null() && renders_as(text, messages, Json(), add_generation_prompt, encoder))
    return bad_row(
        "the chat template does not show the tools of the row: name one that does (chat_template), "
        "or set data.columns.tools to \"\" to leave them out");
  if (std::ranges::none_of(messages.array(), has_calls)) return {};
  Json::Array silent;
  for (const Json& message : messages.array())
    silent.push_back(without(message, [](std::string_view name) { return name == "tool_calls"; }));
  if (!renders_as(text, Json(std::move(silent)), tools, add_generation_prompt, encoder)) return {};
  return bad_row(
      "the chat template does not show tool_calls: name one that does (chat_template), or remove "
      "the member from the messages");
}

Result<> check_reasoning_shown(const Json& messages, const Json& tools, const std::string& text,
                               const TextEncoder& encoder) {
  const auto& list = messages.array();
  if (list.empty() || !reasoning_of(list.back())) return {};
  Json::Array silent = list;
  silent.back() = without(list.back(), is_reasoning);
  if (!renders_as(text, Json(std::move(silent)), tools, false, encoder)) return {};
  return bad_row(
      "the chat template does not show the reasoning of the last message (reasoning_content): name "
      "one that does (chat_template), or remove the member");
}

namespace {

// Names of members of calls, beside their functions' names and arguments.
void add_call_members(const Json& message, std::set<std::string>& names) {
  const Json* calls = message.find("tool_calls");
  if (!calls || !calls->is_array()) return;
  for (const Json& item : calls->array()) {
    const Json* function = item.find("function");
    if (!function || !function->is_object()) continue;
    for (const auto& [name, value] : item.object())
      if (name != "function" && !value.is_null() && !(name == "type" && value == Json("function")))
        names.insert("tool_calls." + name);
    for (const auto& [name, value] : function->object())
      if (name != "name" && name != "arguments" && !value.is_null())
        names.insert("tool_calls.function." + name);
  }
}

// The message without the member at `path`, a name or that of a member of its calls.
Json without_path(const Json& message, const std::string& path) {
  constexpr std::string_view of_entry = "tool_calls.", of_function = "tool_calls.function.";
  if (!path.starts_with(of_entry))
    return without(message, [&](std::string_view each) { return each == path; });
  Json out = message;
  for (auto& [name, calls] : out.object()) {
    if (name != "tool_calls" || !calls.is_array()) continue;
    for (Json& entry : calls.array()) {
      const Json* function = entry.find("function");
      if (!function || !function->is_object()) continue;
      if (!path.starts_with(of_function)) {
        entry = without(entry, [&](std::string_view each) {
          return each == std::string_view(path).substr(of_entry.size());
        });
        continue;
      }
      entry.set("function", without(*function, [&](std::string_view each) {
                  return each == std::string_view(path).substr(of_function.size());
                }));
    }
  }
  return out;
}

}  // namespace

bool has_unused_weight(const Json& prompt) {
  if (!prompt.is_array()) return false;
  return std::ranges::any_of(prompt.array(), [](const Json& message) {
    const Json* weight = message.find("loss_weight");
    return weight && *weight != Json(0.0);
  });
}

std::vector<std::string> unshown_members(const Json& messages, const Json& tools,
                                         const TextEncoder& encoder) {
  std::set<std::string> names;
  for (const Json& message : messages.array()) {
    for (const auto& [name, value] : message.object())
      if (is_other(name) && !value.is_null()) names.insert(name);
    add_call_members(message, names);
  }
  if (names.empty() || !encoder.has_chat_template()) return {};
  const auto whole = encoder.render_chat(messages, false, tools);
  if (!whole) return {};
  std::vector<std::string> out;
  for (const std::string& name : names) {
    Json::Array silent;
    for (const Json& message : messages.array()) silent.push_back(without_path(message, name));
    if (renders_as(whole->text, Json(std::move(silent)), tools, false, encoder))
      out.push_back(name);
  }
  return out;
}

}  // namespace troupe::engine::data
