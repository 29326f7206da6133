// ChatModel: what answers a chat: a model of this process, or a server.
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "launch/commands/conversation.h"
#include "launch/commands/model_output.h"

namespace troupe::launch::commands {

class ChatModel {
 public:
  virtual ~ChatModel() = default;
  /// Prints the reply to the last message, with a newline, while it arrives, and returns it.
  /// Leaves out the oldest turns that do not fit into the context, and reports that on stderr.
  /// Ctrl-C (Interruption::pending) ends the reply early. An error leaves the last message
  /// unanswered.
  virtual Result<std::string> reply(Conversation& conversation, ModelOutput& output) = 0;
};

}  // namespace troupe::launch::commands
