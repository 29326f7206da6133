// VirtualScheduler: a deterministic scheduler for tests. All executors run on the caller's thread
// over virtual time. Where threads would race (jobs ready on several executors), the seed
// determines the order. Jobs take no time. Single-threaded.
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
  /// Throws Bug when nothing is left to run and `done` is not ready: the task can never continue.
  void drive(std::future<void>& done, const std::function<void()>& tick) override;

  /// Runs ready jobs until none is left, without advancing the time.
  void run_ready();
  /// Advances the time by `duration` and runs the jobs and timers that become due.
  void advance(Duration duration);
  /// Runs a job after a delay on a separate executor; used by simulated transports.
  void later(Duration delay, Job job);
  /// Time since the scheduler was created.
  Duration elapsed() const { return now_ - Time{}; }

 private:
  class VirtualExecutor;
  struct Timer {
    VirtualExecutor* executor;
    TimerId id;
    Job job;
  };
  bool run_one();                 // runs one ready job, if any
  bool wake_timers(Time latest);  // fires the next timer due by `latest`, if any

  std::uint64_t seed_, draws_ = 0;
  Time now_{};
  TimerId last_timer_ = 0;
  const VirtualExecutor* running_ = nullptr;
  std::vector<std::unique_ptr<VirtualExecutor>> executors_;
  std::multimap<Time, Timer> timers_;
};

}  // namespace troupe::actors
