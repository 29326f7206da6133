// LocalChat: a chat with a model of this process.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "launch/commands/chat.h"
#include "launch/commands/chat_model.h"
#include "launch/commands/prompt_engine.h"
#include "launch/model/chat_prompt.h"

namespace troupe::launch::commands {

class LocalChat final : public ChatModel {
 public:
  /// Loads the model. Throws Failure.
  explicit LocalChat(const ChatOptions& options);
  Result<std::string> reply(Conversation& conversation, ModelOutput& output) override;

 private:
  Result<std::vector<std::int32_t>> fitting_prompt(Conversation& conversation);

  engine::adapter::ModelFolders folders_;
  model::ChatPrompt prompt_;
  PromptEngine engine_;
  std::optional<engine::tokenizer::StreamDecoder> decoder_;
  std::uint64_t replies_ = 0;
};

}  // namespace troupe::launch::commands
