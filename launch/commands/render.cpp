#include "launch/commands/render.h"

#include <iostream>

#include "engine/base/text.h"
#include "engine/tokenizer/prompt_types.h"
#include "engine/tokenizer/tokenizer.h"
#include "launch/commands/json_lines.h"
#include "launch/commands/template_tokens.h"

namespace troupe::launch {

namespace {

/// The member, or null when it is absent.
Json member(const Json& line, std::string_view key) {
  const Json* found = line.find(key);
  return found ? *found : Json();
}

Result<std::optional<std::string>> text_or(const Json& line, std::string_view key,
                                           const std::optional<std::string>& otherwise) {
  const Json* found = line.find(key);
  if (!found || found->is_null()) return otherwise;
  if (!found->is_string())
    return fail(Errc::bad_input, cat(key, ": expected a string, found ", found->type_name()));
  return std::optional(found->string());
}

Result<engine::tokenizer::RenderInput> input_of(const Json& line, const TemplateTokens& own) {
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
  for (auto [key, otherwise, to] : {std::tuple{"bos_token", &own.bos, &input.bos_token},
                                    {"eos_token", &own.eos, &input.eos_token}}) {
    auto text = text_or(line, key, *otherwise);
    RETURN_IF_ERROR(text);
    *to = std::move(*text);
  }
  auto now = text_or(line, "now", std::nullopt);
  RETURN_IF_ERROR(now);
  input.now = std::move(*now);
  return input;
}

}  // namespace

int render(const RenderOptions& options) {
  const bool folder = !options.model.empty();
  auto found =
      !options.prompt_type.empty()
          ? engine::tokenizer::prompt_type(options.prompt_type)
          : engine::tokenizer::ChatTemplate::load(folder ? options.model : options.template_file);
  const auto chat = value_or_throw(std::move(found));
  const TemplateTokens own = folder ? template_tokens(options.model) : TemplateTokens{};
  const auto answer = [&](const Json& line) -> Result<Json> {
    const auto input = input_of(line, own);
    RETURN_IF_ERROR(input);
    auto rendered = chat.render(*input);
    RETURN_IF_ERROR(rendered);
    Json out;
    out.set("text", std::move(rendered->text));
    if (!chat.has_generation()) return out;
    Json::Array spans;
    for (const auto& [begin, end] : rendered->assistant_spans) {
      Json::Array span;
      span.emplace_back(static_cast<std::int64_t>(begin));
      span.emplace_back(static_cast<std::int64_t>(end));
      spans.emplace_back(std::move(span));
    }
    out.set("assistant_spans", std::move(spans));
    return out;
  };
  std::ios::sync_with_stdio(false);
  value_or_throw(answer_lines(std::cin, std::cout, answer));
  return 0;
}

namespace {

Json json_of(const std::vector<engine::tokenizer::TokenId>& ids) {
  Json::Array out;
  out.reserve(ids.size());
  for (const auto id : ids) out.emplace_back(std::int64_t{id});
  return out;
}

}  // namespace

int tokenize(const TokenizeOptions& options) {
  const auto tokenizer = value_or_throw(engine::tokenizer::Tokenizer::load(options.model));
  const auto encode = [&](const Json& line) -> Result<Json> {
    const auto text = get_string(line, "text", "the line");
    RETURN_IF_ERROR(text);
    return Json(Json::Object{{"ids", json_of(tokenizer.encode(*text, options.special))}});
  };
  const auto decode = [&](const Json& line) -> Result<Json> {
    const auto ids = ids_of(line, static_cast<std::int64_t>(tokenizer.vocab_size()));
    RETURN_IF_ERROR(ids);
    return Json(Json::Object{{"text", tokenizer.decode(*ids, true)}});
  };
  std::ios::sync_with_stdio(false);
  value_or_throw(options.decode ? answer_lines(std::cin, std::cout, decode)
                                : answer_lines(std::cin, std::cout, encode));
  return 0;
}

}  // namespace troupe::launch
