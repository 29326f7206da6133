#include "launch/serve/api/prompt_fields.h"

#include "engine/base/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::api {

namespace {

void add_text(const std::string& text, const std::string& field, bool add_special,
              const ServedModel& model, Prompts& prompts) {
  prompts.ids.push_back(value_or_refuse(field, model.encode(text, add_special)));
  prompts.texts.push_back(text);
}

}  // namespace

Prompts read_prompts(RequestFields& fields, const std::string& name, bool add_special,
                     const ServedModel& model) {
  const Json* prompt = fields.find(name);
  if (prompt == nullptr) refuse(name, name + " is missing");
  Prompts prompts;
  if (prompt->is_string()) {
    add_text(prompt->string(), name, add_special, model, prompts);
    return prompts;
  }
  if (!prompt->is_array() || prompt->array().empty()) {
    refuse(name, cat(name,
                     ": expected a string, a list of strings, a list of token ids or a list "
                     "of such lists, found ",
                     prompt->is_array() ? "an empty list" : prompt->type_name()));
  }
  if (prompt->array().front().is_integer()) {
    prompts.ids.push_back(read_ids(*prompt, model.vocabulary(), name));
    return prompts;
  }
  for (const Json& each : prompt->array()) {
    const std::string field = cat(name, "[", prompts.ids.size(), "]");
    if (each.is_string() && prompts.texts.size() == prompts.ids.size())
      add_text(each.string(), field, add_special, model, prompts);
    else if (each.is_array() && prompts.texts.empty())
      prompts.ids.push_back(read_ids(each, model.vocabulary(), field));
    else
      refuse(field,
             cat(field, ": expected another prompt of the same kind, found ", each.type_name()));
  }
  return prompts;
}

}  // namespace troupe::launch::api
