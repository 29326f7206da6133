// Stop: how Ctrl-C reaches a run.
#pragma once

#include <atomic>

namespace troupe::actors {

/// A request to stop; request() may be called from a signal handler. Once: algorithms see
/// requested() and finish their step. Twice: the asks in flight end with Errc::cancelled.
class Stop {
 public:
  void request() noexcept { count_.fetch_add(1); }
  bool requested() const noexcept { return count_.load() > 0; }
  bool urgent() const noexcept { return count_.load() > 1; }

 private:
  std::atomic<int> count_ = 0;
};

}  // namespace troupe::actors
