// Interruption: Ctrl-C as a request that the program answers, instead of its end.
#pragma once

#include <csignal>

namespace troupe::launch::terminal {

/// During its lifetime SIGINT sets a flag; afterwards it has its former effect. A system call that
/// waits returns EINTR. At most one object at a time. A SIGINT that was ignored stays ignored.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;

  /// Whether Ctrl-C was pressed since the last take().
  static bool pending();
  /// Returns pending() and clears it.
  static bool take();

 private:
  struct sigaction former_ {};
};

}  // namespace troupe::launch::terminal
