// WorkBudget: the deadline of work that somebody waits for, and whether anybody still does.
#pragma once

#include <atomic>
#include <chrono>

#include "engine/base/errors/error.h"

namespace troupe {

/// Made where the work is queued and polled by the work itself, on any thread. Long loops over what
/// a client sent call check() every few microseconds to milliseconds and return its error.
class WorkBudget {
 public:
  using Clock = std::chrono::steady_clock;

  /// Without a deadline.
  WorkBudget() = default;
  explicit WorkBudget(Clock::time_point deadline) : deadline_(deadline) {}
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  /// Nobody waits for the result any more: the client has disconnected, or the server ends.
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }
  Clock::time_point deadline() const noexcept { return deadline_; }

  /// Errc::cancelled after cancel(), Errc::timeout after the deadline. Costs a load, and one
  /// reading of the clock (about 30 ns) if there is a deadline.
  Result<> check() const;

  /// The budget of the work that this thread does, or nullptr: functions that are called deep
  /// within a request need no parameter for it. check_cancelled() (cancellation.h) polls it.
  static const WorkBudget* of_this_thread() noexcept;

  /// While an object lives, `budget` is that of this thread; then the one before is again.
  class Scope {
   public:
    explicit Scope(const WorkBudget& budget) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const WorkBudget* before_;
  };

 private:
  const Clock::time_point deadline_ = Clock::time_point::max();
  std::atomic<bool> cancelled_ = false;
};

}  // namespace troupe
