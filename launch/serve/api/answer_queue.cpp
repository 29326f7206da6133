#include "launch/serve/api/answer_queue.h"

#include <chrono>
#include <exception>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::launch::serve::api {

AnswerQueue::AnswerQueue() : thread_(thread_with_blocked_signals("answers", [this] { run(); })) {
}

AnswerQueue::~AnswerQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AnswerQueue::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void AnswerQueue::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty()) {
      changed_.wait_for(lock, std::chrono::seconds(1));
      continue;
    }
    std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      task();
    } catch (const std::exception& problem) {  // the request is answered with status 500
      log_error(cat("an answer: ", problem.what()));
    }
    task = nullptr;  // what it holds ends without the lock
    lock.lock();
  }
}

}  // namespace troupe::launch::serve::api
