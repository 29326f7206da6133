#include "launch/serve/api/prompt_fields.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

namespace {

void add_text(const std::string& text, const std::string& field, bool add_special,
              const ServedModel& model, Prompts& prompts) {
  prompts.ids.push_back(value_or_refuse(field, model.encode(text, add_special)));
  prompts.texts.push_back(text);
}

}  // namespace

bool Truncation::apply(std::vector<std::int32_t>& prompt, std::int64_t room) const {
  if (!tokens) return false;
  const std::int64_t kept = *tokens < 0 ? std::max<std::int64_t>(room, 0) : *tokens;
  const std::int64_t excess = std::ssize(prompt) - kept;
  if (excess <= 0) return false;
  const auto from = keeps_end ? prompt.begin() : prompt.begin() + kept;
  prompt.erase(from, from + excess);
  return true;
}

Truncation read_truncation(RequestFields& fields, std::int64_t context) {
  Truncation out;
  out.tokens = fields.integer("truncate_prompt_tokens", -1, context);
  if (out.tokens == 0)
    refuse("truncate_prompt_tokens",
           "truncate_prompt_tokens is 0; expected the number of tokens to keep, or -1");
  const auto side = fields.text("truncation_side").value_or("left");
  if (side != "left" && side != "right")
    refuse("truncation_side", cat("truncation_side: expected left or right, found ", quote(side)));
  out.keeps_end = side == "left";
  return out;
}

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

}  // namespace troupe::launch::serve::api
