// Scheduler: the port that runs jobs on executors and provides the clock. ThreadScheduler runs a
// thread per executor. VirtualScheduler is deterministic: one thread, virtual time, seeded order.
// The code above does not depend on which is used.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <string>

namespace troupe::actors {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;
using Time = Clock::time_point;
using Job = std::function<void()>;
using TimerId = std::uint64_t;

/// Nanoseconds since the clock's epoch, which the processes of one host share.
inline std::int64_t nanoseconds(Time time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// Runs jobs one at a time in the order of their post() calls.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Callable on any thread. Never runs the job before it returns.
  virtual void post(Job job) = 0;
  /// Posts the job at `when`. Timers must be set and cancelled by jobs of this executor.
  virtual TimerId at(Time when, Job job) = 0;
  /// Cancels a timer. False when its job has run or is already posted.
  virtual bool cancel(TimerId timer) = 0;
  /// True while a job of this executor runs on the calling thread.
  virtual bool inside() const = 0;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// Returns the executor of that name, creating it on first use. Call it on the thread that
  /// created the scheduler. Executors live as long as the scheduler.
  virtual Executor& executor(const std::string& name) = 0;
  virtual Time now() const = 0;
  /// Blocks the caller, which must not be on an executor, until `done` is ready. Calls `tick` about
  /// every 20 ms (with virtual time: before each job).
  virtual void drive(std::future<void>& done, const std::function<void()>& tick) = 0;
};

}  // namespace troupe::actors
