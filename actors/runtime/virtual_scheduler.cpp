#include "actors/runtime/virtual_scheduler.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"

namespace troupe::actors {

class VirtualScheduler::VirtualExecutor final : public Executor {
 public:
  VirtualExecutor(std::string name, VirtualScheduler& scheduler)
      : name_(std::move(name)), scheduler_(scheduler) {}
  void post(Job job) override { ready_.push_back(std::move(job)); }
  TimerId at(Time when, Job job) override {
    const TimerId id = ++scheduler_.last_timer_;
    scheduler_.timers_.emplace(when, Timer{this, id, std::move(job)});
    return id;
  }
  bool cancel(TimerId timer) override {
    auto& timers = scheduler_.timers_;
    const auto found = std::find_if(timers.begin(), timers.end(),
                                    [&](const auto& entry) { return entry.second.id == timer; });
    if (found == timers.end()) return false;
    timers.erase(found);
    return true;
  }
  bool inside() const override { return scheduler_.running_ == this; }

  const std::string& name() const { return name_; }
  bool ready() const { return !ready_.empty(); }
  void run_first() {
    const Job job = std::move(ready_.front());
    ready_.pop_front();
    const Running running(scheduler_.running_, this);
    job();
  }

 private:
  struct Running {  // restores the executor even when a job throws, as tests may
    Running(const VirtualExecutor*& slot, const VirtualExecutor* executor)
        : slot_(slot), before_(std::exchange(slot, executor)) {}
    ~Running() { slot_ = before_; }
    const VirtualExecutor*& slot_;
    const VirtualExecutor* before_;
  };

  std::string name_;
  VirtualScheduler& scheduler_;
  std::deque<Job> ready_;
};

VirtualScheduler::VirtualScheduler(std::uint64_t seed) : seed_(seed) {
}

VirtualScheduler::~VirtualScheduler() = default;

Executor& VirtualScheduler::executor(const std::string& name) {
  for (const auto& executor : executors_) {
    if (executor->name() == name) return *executor;
  }
  executors_.push_back(std::make_unique<VirtualExecutor>(name, *this));
  return *executors_.back();
}

bool VirtualScheduler::run_one() {
  std::vector<VirtualExecutor*> ready;
  for (const auto& executor : executors_) {
    if (executor->ready()) ready.push_back(executor.get());
  }
  if (ready.empty()) return false;
  ready[uniform_below(ready.size(), seed_, 0, draws_++)]->run_first();
  return true;
}

bool VirtualScheduler::wake_timers(Time latest) {
  if (timers_.empty() || timers_.begin()->first > latest) return false;
  now_ = std::max(now_, timers_.begin()->first);
  // One timer at a time: its job may cancel the next one, as on a ThreadScheduler.
  auto first = timers_.extract(timers_.begin());
  first.mapped().executor->post(std::move(first.mapped().job));
  return true;
}

void VirtualScheduler::drive(std::future<void>& done, const std::function<void()>& tick) {
  while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    tick();
    const bool moved = run_one() || wake_timers(Time::max());
    check(moved || done.wait_for(std::chrono::seconds(0)) == std::future_status::ready,
          "deadlock: no job is ready, no timer is set, and the task has not ended");
  }
}

void VirtualScheduler::run_ready() {
  do {
    while (run_one()) {
    }
  } while (wake_timers(now_));
}

void VirtualScheduler::advance(Duration duration) {
  const Time until = now_ + duration;
  run_ready();
  while (wake_timers(until)) run_ready();
  now_ = until;
}

void VirtualScheduler::later(Duration delay, Job job) {
  executor("network").at(now_ + delay, std::move(job));
}

}  // namespace troupe::actors
