#include "launch/serve/api/workers.h"

#include <chrono>
#include <utility>

#include "engine/base/thread_with_blocked_signals.h"

namespace troupe::launch::api {

Workers::Workers(int threads, std::size_t max_waiting) : max_waiting_(max_waiting) {
  try {
    threads_.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i)
      threads_.push_back(thread_with_blocked_signals("requests", [this] { run(); }));
  } catch (...) {
    end();  // those that were started
    throw;
  }
}

Workers::~Workers() {
  end();
}

void Workers::end() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& each : threads_) each.join();
}

bool Workers::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void Workers::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty()) {
      changed_.wait_for(lock, std::chrono::seconds(1));
      continue;
    }
    std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds ends without the lock
    lock.lock();
  }
}

}  // namespace troupe::launch::api
