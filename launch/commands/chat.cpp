#include "launch/commands/chat.h"

#include <unistd.h>

#include <iostream>
#include <optional>

#include "engine/base/text.h"
#include "engine/tokenizer/chat_template.h"
#include "launch/commands/sampler.h"
#include "launch/commands/template_tokens.h"

namespace troupe::launch {

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
