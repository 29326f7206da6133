#include "launch/serve/formats/translation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/serve/api/fields/sampling_rows.h"

namespace troupe::launch::serve::formats {

namespace {

const std::string& text_of(const Json& part, const std::string& where) {
  const Json* text = part.find("text");
  if (text == nullptr || !text->is_string())
    api::refuse(where + ".text", cat(where, ".text: expected a string, found ",
                                     text ? text->type_name() : "nothing"));
  return text->string();
}

}  // namespace

void pass_fields(api::RequestFields& fields, std::initializer_list<std::string_view> names,
                 Json& chat) {
  const auto pass = [&](std::string_view name) {
    if (const Json* value = fields.find(name)) chat.set(std::string(name), *value);
  };
  for (const std::string_view name : names) pass(name);
}

void pass_sampling(api::RequestFields& fields, Json& chat) {
  for (const api::FieldRow& row : api::sampling_rows()) pass_fields(fields, {row.name}, chat);
}

const Json& required_member(api::RequestFields& fields, const char* name) {
  const Json* value = fields.find(name);
  if (value == nullptr) api::refuse(fields.path(name), cat(fields.path(name), " is missing"));
  return *value;
}

std::string required_text(api::RequestFields& fields, const char* name) {
  required_member(fields, name);
  return *fields.text(name);
}

void add_unknown(api::RequestFields& fields, api::UnknownFields& into) {
  for (std::string& name : fields.unknown()) into.push_back(std::move(name));
}

void accept_members(api::RequestFields& fields, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) fields.find(name);
}

void refuse_member(api::RequestFields& fields, std::string_view name, const std::string& why) {
  const Json* found = fields.find(name);
  if (found == nullptr || *found == Json(false) || *found == Json(Json::Array{})) return;
  api::refuse_unsupported(fields.path(name), cat(fields.path(name), " is not supported: ", why));
}

void drop_format_beside_call(Json& chat) {
  const Json* choice = chat.find("tool_choice");
  if (choice == nullptr || (!choice->is_object() && *choice != Json("required"))) return;
  std::erase_if(chat.object(),
                [](const auto& member) { return member.first == "response_format"; });
}

Json text_content(const Json& content, const std::string& where,
                  std::initializer_list<std::string_view> types) {
  if (content.is_string()) return content;
  if (!content.is_array())
    api::refuse(where,
                cat(where, ": expected a string or a list of parts, found ", content.type_name()));
  Json::Array parts;
  for (const Json& part : content.array()) {
    const std::string here = cat(where, "[", parts.size(), "]");
    api::RequestFields fields(part, here + ".");
    const auto type = fields.text("type");
    if (!type || std::ranges::find(types, *type) == types.end())
      api::refuse_unsupported(here,
                              cat(here, ": only parts of type ",
                                  join(std::vector<std::string>(types.begin(), types.end()), ", "),
                                  " are supported", type ? cat(", found ", quote(*type)) : ""));
    parts.push_back(Json::Object{{"type", "text"}, {"text", text_of(part, here)}});
  }
  return parts;
}

std::string joined_text(const Json& content, std::string_view between) {
  if (content.is_string()) return content.string();
  std::string text;
  for (const Json& part : content.array()) {
    if (!text.empty()) text += between;
    text += part.find("text")->string();
  }
  return text;
}

}  // namespace troupe::launch::serve::formats
