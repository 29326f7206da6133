#include "launch/commands/local_chat.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "launch/terminal/interruption.h"

namespace troupe::launch::commands {

LocalChat::LocalChat(const ChatOptions& options)
    : folders_(value_or_throw(
          engine::adapter::model_folders(options.model.model, options.model.adapter))),
      prompt_(value_or_throw(model::ChatPrompt::load(folders_.text, options.chat_template))),
      engine_(options, [] { return terminal::Interruption::pending(); }) {
}

Result<std::string> LocalChat::reply(Conversation& conversation, ModelOutput& output) {
  const auto prompt = fitting_prompt(conversation);
  RETURN_IF_ERROR(prompt);
  auto sampling = engine_.prompts().settings();
  sampling.beams.returned = 1;
  decoder_.emplace(*value_or_throw(engine_.model().tokenizer()), true);
  const auto print = [&](const engine::generate::TokenEvent& event) {
    output.print(decoder_->push(event.token));
  };
  const auto generated = engine_.generate(*prompt, sampling, replies_++, print);
  RETURN_IF_ERROR(generated);
  const auto& best = generated->front();
  output.print_line(sampling.beams.count > 1 ? best.text : decoder_->finish());
  return best.text;
}

/// The tokens of the conversation, without its oldest turns where they leave no room for a reply.
Result<std::vector<std::int32_t>> LocalChat::fitting_prompt(Conversation& conversation) {
  std::vector<std::int32_t> tokens;
  const auto count = [&](const Json& messages) -> Result<std::size_t> {
    engine::tokenizer::RenderInput input;
    input.messages = messages;
    input.add_generation_prompt = true;
    const auto text = prompt_.render(std::move(input));
    RETURN_IF_ERROR(text);
    auto encoded = engine_.model().tokens_of_text(*text, false);
    RETURN_IF_ERROR(encoded);
    tokens = std::move(*encoded);
    return tokens.size();
  };
  const std::size_t context = engine_.prompts().context(),
                    reply = std::min(engine_.prompts().max_new_tokens(), context / 4);
  const auto left_out = conversation.fit(count, context - reply);
  RETURN_IF_ERROR(left_out);
  if (*left_out > 0) {
    std::cerr << "(the context of " << context << " tokens is full: the oldest " << *left_out
              << (*left_out == 1 ? " turn is" : " turns are") << " no longer sent)\n";
  }
  return tokens;
}

}  // namespace troupe::launch::commands
