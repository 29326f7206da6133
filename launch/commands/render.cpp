#include "launch/commands/render.h"

#include <iostream>

#include "engine/base/text/text.h"
#include "engine/tokenizer/prompt_types.h"
#include "engine/tokenizer/tokenizer.h"
#include "launch/model/chat_prompt.h"
#include "launch/model/json_lines.h"

namespace troupe::launch::commands {

int render(const RenderOptions& options) {
  const bool folder = !options.model.empty();
  using namespace engine::tokenizer;
  const std::string& type = options.prompt_type;
  auto found = type.empty() ? ChatTemplate::load(folder ? options.model : options.template_file)
               : type.find('#') != type.npos ? load_file_or_prompt_type(type)
                                             : prompt_type(type);
  const auto chat = value_or_throw(std::move(found));
  const TemplateTokens own = folder ? template_tokens(options.model) : TemplateTokens{};
  const auto answer = [&](const Json& line) -> Result<Json> {
    const auto input = model::read_render_input(line, own);
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
  value_or_throw(model::answer_lines(std::cout, answer));
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
  const auto tokenizer =
      value_or_throw(engine::tokenizer::Tokenizer::load(options.model, options.ids));
  const auto encode = [&](const Json& line) -> Result<Json> {
    const auto text = get_string(line, "text", "the line");
    RETURN_IF_ERROR(text);
    return Json(Json::Object{{"ids", json_of(tokenizer.encode(*text, options.special))}});
  };
  const auto decode = [&](const Json& line) -> Result<Json> {
    const auto ids = model::ids_of(line, static_cast<std::int64_t>(tokenizer.vocab_size()));
    RETURN_IF_ERROR(ids);
    return Json(Json::Object{{"text", tokenizer.decode(*ids, true)}});
  };
  std::ios::sync_with_stdio(false);
  value_or_throw(options.decode ? model::answer_lines(std::cout, decode)
                                : model::answer_lines(std::cout, encode));
  return 0;
}

}  // namespace troupe::launch::commands
