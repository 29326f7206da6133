#include "launch/commands/model_output.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <iostream>

namespace troupe::launch::commands {

ModelOutput::ModelOutput() : terminal_(::isatty(STDOUT_FILENO) == 1) {
}

namespace {

// Defers Ctrl-C: a write that it interrupts loses text and leaves an error in the stream.
class DeferredInterruption {
 public:
  DeferredInterruption() {
    sigset_t interruption;
    sigemptyset(&interruption);
    sigaddset(&interruption, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interruption, &before_);
  }
  ~DeferredInterruption() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  DeferredInterruption(const DeferredInterruption&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

void ModelOutput::print(std::string_view piece) {
  const DeferredInterruption deferred;
  if (terminal_)
    std::cout << stream_.add(piece) << std::flush;
  else
    std::cout << piece << std::flush;
}

void ModelOutput::print_line(std::string_view last) {
  print(last);
  const DeferredInterruption deferred;
  std::cout << stream_.finish() << std::endl;
}

}  // namespace troupe::launch::commands
