// ThreadScheduler: the production scheduler. Each executor is a thread with an event loop; time is
// the monotonic clock.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "actors/runtime/scheduler.h"

namespace troupe::actors {

class ThreadScheduler final : public Scheduler {
 public:
  ThreadScheduler();
  /// Waits for running jobs, drops pending ones and joins the threads. Call it on the thread that
  /// created the scheduler.
  ~ThreadScheduler() override;
  Executor& executor(const std::string& name) override;
  Time now() const override { return Clock::now(); }
  void drive(std::future<void>& done, const std::function<void()>& tick) override;

 private:
  std::thread::id owner_ = std::this_thread::get_id();
  std::map<std::string, std::unique_ptr<Executor>> executors_;
};

}  // namespace troupe::actors
