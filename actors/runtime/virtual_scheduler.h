// VirtualScheduler: the deterministic scheduler. All executors on the caller's thread, virtual
// time, and, where real threads would race (jobs ready on several executors), an order drawn from
// the seed. A job takes no time. For one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/runtime/scheduler.h"

namespace troupe::actors {

class VirtualScheduler final : public Scheduler {
 public:
  explicit VirtualScheduler(std::uint64_t seed = 0);
  ~VirtualScheduler() override;
  Executor& executor(const std::string& name) override;
  Time now() const override { return now_; }
  /// A Bug when nothing is left to do and `done` is not ready: somebody waits for what can never
  /// come.
  void drive(std::future<void>& done, const std::function<void()>& tick) override;

  /// Runs what is ready now, until nothing is. Time stands still.
  void settle();
  /// Lets this much time pass, running what falls due in it.
  void advance(Duration duration);
  /// Runs a job after a delay, in an executor of its own: the clock of a simulated transport.
  void later(Duration delay, Job job);
  /// Time since the scheduler was made.
  Duration elapsed() const { return now_ - Time{}; }

 private:
  class VirtualExecutor;
  struct Timer {
    VirtualExecutor* executor;
    TimerId id;
    Job job;
  };
  bool run_one();                 // one ready job, if any
  bool wake_timers(Time latest);  // moves on to the next timer due by `latest`, if any

  std::uint64_t seed_, draws_ = 0;
  Time now_{};
  TimerId last_timer_ = 0;
  const VirtualExecutor* running_ = nullptr;
  std::vector<std::unique_ptr<VirtualExecutor>> executors_;
  std::multimap<Time, Timer> timers_;
};

}  // namespace troupe::actors
