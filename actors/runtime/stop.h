// Stop: a flag that asks a run to stop, for Ctrl-C.
#pragma once

#include <atomic>

namespace troupe::actors {

/// request() may be called from a signal handler. After the first request, algorithms finish their
/// step (requested()). After the second, the asks in flight end with Errc::cancelled (urgent()).
class Stop {
 public:
  void request() noexcept { count_.fetch_add(1); }
  bool requested() const noexcept { return count_.load() > 0; }
  bool urgent() const noexcept { return count_.load() > 1; }

 private:
  std::atomic<int> count_ = 0;
};

}  // namespace troupe::actors
