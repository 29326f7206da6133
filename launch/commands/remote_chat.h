// RemoteChat: a chat with a server that has the OpenAI API.
#pragma once

#include <string>

#include "engine/base/json/json.h"
#include "launch/commands/chat.h"
#include "launch/commands/chat_model.h"
#include "launch/serve/http/client.h"

namespace troupe::launch::commands {

class RemoteChat final : public ChatModel {
 public:
  /// Asks the server for its first model, unless options.model.model names one. Throws Failure.
  explicit RemoteChat(const ChatOptions& options);
  Result<std::string> reply(Conversation& conversation, ModelOutput& output) override;

 private:
  std::string first_model() const;
  Result<std::string> stream(const Json& messages, ModelOutput& output) const;

  serve::http::Client client_;
  std::string model_;
  Json settings_;  // fields of a request
};

}  // namespace troupe::launch::commands
