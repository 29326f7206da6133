#include "launch/commands/generate.h"

#include <unistd.h>
#include <iostream>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/chat_template.h"
#include "launch/commands/json_lines.h"
#include "launch/commands/sampler.h"
#include "launch/commands/template_tokens.h"

namespace troupe::launch {

namespace {

int stream(const GenerateOptions& options) {
  std::optional<engine::tokenizer::StreamDecoder> decoder;
  const auto on_token = [&](const engine::generate::TokenEvent& event) {
    std::cout << decoder->push(event.token) << std::flush;
  };
  Sampler sampler(options, on_token);
  const auto tokens =
      value_or_throw(sampler.model().tokens_of(Json::Object{{"prompt", options.prompt}}, "prompt"));
  const auto& tokenizer = *value_or_throw(sampler.model().tokenizer());
  auto sampling = sampler.settings();
  if (sampling.beams.count > 1) {
    for (const auto& each : value_or_throw(sampler.generate(tokens, sampling)))
      std::cout << tokenizer.decode(tokens, true) << each.text << std::endl;
    return 0;
  }
  const auto samples = static_cast<std::uint64_t>(std::exchange(sampling.beams.returned, 1));
  for (std::uint64_t k = 0; k < samples; ++k) {
    decoder.emplace(tokenizer, true);
    for (const auto id : tokens) std::cout << decoder->push(id);
    value_or_throw(sampler.generate(tokens, sampling, k));
    std::cout << decoder->finish() << std::endl;
  }
  return 0;
}

}  // namespace

int generate(const GenerateOptions& options) {
  if (options.has_prompt) return stream(options);
  Sampler sampler(options, {});
  const auto answer = [&](const Json& line) -> Result<Json> {
    const auto tokens = sampler.model().tokens_of(line, "prompt");
    RETURN_IF_ERROR(tokens);
    auto sampling = sampler.settings();
    RETURN_IF_ERROR(read_settings(line, sampling));
    const auto generated = sampler.generate(*tokens, sampling);
    RETURN_IF_ERROR(generated);
    const bool has_text = sampler.model().tokenizer().has_value();
    const bool has_score = sampling.beams.count > 1;
    if (sampling.beams.returned == 1) return json_of(generated->front(), has_text, has_score);
    Json::Array all;
    for (const auto& each : *generated) all.push_back(json_of(each, has_text, has_score));
    return Json(Json::Object{{"samples", std::move(all)}});
  };
  std::ios::sync_with_stdio(false);
  value_or_throw(answer_lines(std::cin, std::cout, answer));
  return 0;
}

namespace {

Json message(const char* role, std::string content) {
  return Json::Object{{"role", role}, {"content", std::move(content)}};
}

}  // namespace

int chat(const GenerateOptions& options) {
  const auto chat_template =
      value_or_throw(engine::tokenizer::ChatTemplate::load(options.model.model));
  std::optional<engine::tokenizer::StreamDecoder> decoder;
  Sampler sampler(options, [&](const engine::generate::TokenEvent& event) {
    std::cout << decoder->push(event.token) << std::flush;
  });
  const auto& tokenizer = *value_or_throw(sampler.model().tokenizer());
  const TemplateTokens own = template_tokens(options.model.model);
  engine::tokenizer::RenderInput input;
  input.bos_token = own.bos;
  input.eos_token = own.eos;
  input.add_generation_prompt = true;
  Json::Array messages;
  if (!options.system.empty()) messages.push_back(message("system", options.system));
  auto sampling = sampler.settings();
  sampling.beams.returned = 1;
  const bool terminal = ::isatty(STDIN_FILENO) == 1;
  const auto read_question = [terminal](std::string& question) {
    if (terminal) std::cerr << "> ";
    return std::getline(std::cin, question) && !question.empty();
  };
  std::string question;
  for (std::uint64_t turn = 0; read_question(question); ++turn) {
    messages.push_back(message("user", question));
    input.messages = messages;
    const auto rendered = value_or_throw(chat_template.render(input));
    const auto tokens = tokenizer.encode(rendered.text, false);
    decoder.emplace(tokenizer, true);
    const auto generated = value_or_throw(sampler.generate(tokens, sampling, turn));
    std::cout << (sampling.beams.count > 1 ? generated.front().text : decoder->finish())
              << std::endl;
    messages.push_back(message("assistant", generated.front().text));
  }
  return 0;
}

}  // namespace troupe::launch
