// Where jobs run and what time it is: the port under the node. ThreadScheduler is the real one (a
// thread an executor), VirtualScheduler the deterministic one (one thread, virtual time, seeded
// order). The code above is the same.
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

/// Since the clock's epoch; processes of one host share it.
inline std::int64_t nanoseconds(Time time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// Runs jobs one after the other, in the order posted: what happens after a post() returned, on any
/// thread, posts behind it.
class Executor {
 public:
  virtual ~Executor() = default;
  /// From any thread. Never runs the job before it returns.
  virtual void post(Job job) = 0;
  /// Posts the job at `when`. Timers are set and cancelled from inside the executor only.
  virtual TimerId at(Time when, Job job) = 0;
  /// After it the job will not run; false when it has run or is on its way.
  virtual bool cancel(TimerId timer) = 0;
  /// True while a job of this executor is running in this thread.
  virtual bool inside() const = 0;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// The executor of that name, made at the first use. From the thread that made the scheduler.
  /// Executors live as long as the scheduler.
  virtual Executor& executor(const std::string& name) = 0;
  virtual Time now() const = 0;
  /// Blocks the caller, which is in no executor, until `done` is ready; calls `tick` about every 20
  /// ms (virtual: before each job).
  virtual void drive(std::future<void>& done, const std::function<void()>& tick) = 0;
};

}  // namespace troupe::actors
