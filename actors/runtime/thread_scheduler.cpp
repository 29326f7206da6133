// Asio provides the queue, the event loop and the timers.
#include "actors/runtime/thread_scheduler.h"

#define ASIO_STANDALONE
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/threads/progress.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::actors {
namespace {

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(const std::string& name)
      : guard_(asio::make_work_guard(loop_)),
        thread_(thread_with_blocked_signals(name, [this, name] {
          const progress::ThreadScope watched(name, &jobs_);
          loop_.run();
        })) {}
  ~ThreadExecutor() override {
    loop_.stop();
    thread_.join();
  }
  void post(Job job) override {
    jobs_.posted.fetch_add(1);
    asio::post(loop_, [this, job = std::move(job)] {
      job();
      jobs_.finished.fetch_add(1);
    });
  }
  bool inside() const override { return std::this_thread::get_id() == thread_.get_id(); }

  TimerId at(Time when, Job job) override {
    check(inside(), "a timer must be set on its executor");
    const TimerId id = ++last_timer_;
    auto& timer = timers_.emplace(id, asio::steady_timer(loop_, when)).first->second;
    timer.async_wait([this, id, job = std::move(job)](const asio::error_code&) {
      if (timers_.erase(id) > 0) job();  // a cancelled timer is no longer in the table
    });
    return id;
  }
  bool cancel(TimerId timer) override {
    check(inside(), "a timer must be cancelled on its executor");
    return timers_.erase(timer) > 0;
  }

 private:
  // Without the concurrency hint 1, with which Asio would keep jobs posted by the executor itself
  // in a private queue, behind jobs that other threads post later.
  asio::io_context loop_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::map<TimerId, asio::steady_timer> timers_;
  TimerId last_timer_ = 0;
  progress::Jobs jobs_;
  std::thread thread_;
};

}  // namespace

ThreadScheduler::ThreadScheduler() = default;

ThreadScheduler::~ThreadScheduler() = default;

Executor& ThreadScheduler::executor(const std::string& name) {
  check(std::this_thread::get_id() == owner_,
        "executors must be created on the thread that created the scheduler");
  auto& executor = executors_[name];
  if (!executor) executor = std::make_unique<ThreadExecutor>(name);
  return *executor;
}

void ThreadScheduler::drive(std::future<void>& done, const std::function<void()>& tick) {
  while (done.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) tick();
}

}  // namespace troupe::actors
