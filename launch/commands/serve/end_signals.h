// EndSignals: the signals that end a server.
#pragma once

#include <csignal>
#include <ctime>
#include <initializer_list>

namespace troupe::launch::commands {

/// Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 (which mpirun forwards) in this thread and
/// in those that it starts, until the process ends; wait() takes them. A second one does not end
/// the process before the requests.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
      sigaddset(&signals_, number);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    // A client that disconnects is no reason to end.
    std::signal(SIGPIPE, SIG_IGN);
  }

  /// Waits for a signal, at most a second; false if none came.
  bool wait() const {
    const timespec second{.tv_sec = 1, .tv_nsec = 0};
    return sigtimedwait(&signals_, nullptr, &second) > 0;
  }

 private:
  sigset_t signals_{};
};

}  // namespace troupe::launch::commands
