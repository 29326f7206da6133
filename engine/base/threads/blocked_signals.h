// BlockedSignals: signals that wait until the end of a scope.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace troupe {

/// Blocks signals of this thread, and of threads and processes that it starts meanwhile, beside
/// those that are blocked already, until it is destroyed.
class BlockedSignals {
 public:
  explicit BlockedSignals(const sigset_t& signals) : signals_(signals) {
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  BlockedSignals(std::initializer_list<int> numbers) : BlockedSignals(set_of(numbers)) {}
  BlockedSignals(const BlockedSignals&) = delete;
  ~BlockedSignals() { restore(); }

  void restore() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  const sigset_t& signals() const { return signals_; }

 private:
  static sigset_t set_of(std::initializer_list<int> numbers) {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : numbers) sigaddset(&set, number);
    return set;
  }

  sigset_t signals_, before_;
};

}  // namespace troupe
