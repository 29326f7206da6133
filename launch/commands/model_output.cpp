#include "launch/commands/model_output.h"

#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "engine/base/threads/blocked_signals.h"

namespace troupe::launch::commands {

ModelOutput::ModelOutput() : terminal_(::isatty(STDOUT_FILENO) == 1) {
}

void ModelOutput::print(std::string_view piece) {
  // An interrupted write loses text and leaves an error in the stream.
  const BlockedSignals deferred{SIGINT};
  if (terminal_)
    std::cout << stream_.add(piece) << std::flush;
  else
    std::cout << piece << std::flush;
}

void ModelOutput::print_line(std::string_view last) {
  print(last);
  const BlockedSignals deferred{SIGINT};
  std::cout << stream_.finish() << std::endl;
}

}  // namespace troupe::launch::commands
