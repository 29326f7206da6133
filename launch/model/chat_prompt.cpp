#include "launch/model/chat_prompt.h"

#include "engine/base/text/text.h"
#include "engine/tokenizer/prompt_types.h"

namespace troupe::launch::model {

using engine::tokenizer::ChatTemplate;
using engine::tokenizer::RenderInput;

Result<ChatPrompt> ChatPrompt::load(const std::string& folder, const std::string& given) {
  auto form = given.empty() ? ChatTemplate::load(folder)
                            : engine::tokenizer::load_file_or_prompt_type(given);
  if (!form && given.empty() && form.error().code == Errc::not_found) {
    return fail(Errc::not_found,
                cat(form.error().what,
                    ": --template FILE, or the name of a prompt type, such as --template chatml"));
  }
  RETURN_IF_ERROR(form);
  return ChatPrompt(std::move(*form), engine::tokenizer::template_tokens(folder));
}

Result<std::string> ChatPrompt::render(RenderInput input) const {
  input.tokens.insert(tokens_.begin(), tokens_.end());
  auto rendered = template_.render(input);
  RETURN_IF_ERROR(rendered);
  return std::move(rendered->text);
}

namespace {

/// The member, or null when it is absent.
Json member(const Json& line, std::string_view key) {
  const Json* found = line.find(key);
  return found ? *found : Json();
}

Result<std::optional<std::string>> text_in(const Json& line, std::string_view key) {
  const Json* found = line.find(key);
  if (!found || found->is_null()) return std::nullopt;
  if (!found->is_string())
    return fail(Errc::bad_input, cat(key, ": expected a string, found ", found->type_name()));
  return std::optional(found->string());
}

}  // namespace

Result<engine::tokenizer::RenderInput> read_render_input(
    const Json& line, const engine::tokenizer::TemplateTokens& own) {
  engine::tokenizer::RenderInput input;
  input.messages = member(line, "messages");
  if (!input.messages.is_array())
    return fail(Errc::bad_input, "messages: expected a list of messages");
  input.tools = member(line, "tools");
  input.documents = member(line, "documents");
  input.kwargs = member(line, "kwargs");
  if (!input.kwargs.is_null() && !input.kwargs.is_object())
    return fail(Errc::bad_input, "kwargs: expected an object");
  if (const Json* wanted = line.find("add_generation_prompt"); wanted && !wanted->is_null()) {
    if (!wanted->is_bool())
      return fail(Errc::bad_input, "add_generation_prompt: expected true or false");
    input.add_generation_prompt = wanted->boolean();
  }
  input.tokens = own;
  for (const auto role : engine::tokenizer::token_roles) {
    auto text = text_in(line, role);
    RETURN_IF_ERROR(text);
    if (*text) input.tokens.insert_or_assign(std::string(role), std::move(**text));
  }
  auto now = text_in(line, "now");
  RETURN_IF_ERROR(now);
  input.now = std::move(*now);
  return input;
}

}  // namespace troupe::launch::model
