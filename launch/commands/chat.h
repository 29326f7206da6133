// `troupe chat`: a dialogue in the terminal, or over stdin, one message a line.
#pragma once

#include <string>

#include "launch/commands/generate.h"

namespace troupe::launch::commands {

struct ChatOptions : GenerateOptions {
  std::string url;  ///< of a server with the OpenAI API, whose model is model.model; "": none
  std::string api_key_file;           ///< "": none
  bool send_key_unencrypted = false;  ///< also to another host than this one without TLS
  int history_turns = 0;  ///< earlier turns that are sent with a message; 0: all that fit
  /// q, quit, exit, clear and new alone on a line are commands, as in MindSpeed's inference.py.
  bool bare_commands = false;
};

/// Returns the exit code. Throws Failure.
int chat(const ChatOptions& options);

}  // namespace troupe::launch::commands
