// AnswerQueue: a thread that writes answers which would delay the next decoding step.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe::launch::serve::api {

/// One thread, so that the memory of at most one unfinished text is needed. Unlike Workers it
/// refuses nothing: the results are there already and need more memory than what is posted.
class AnswerQueue {
 public:
  AnswerQueue();
  /// Waits for the running task and drops the others.
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  /// Queues a task. What it throws is logged.
  void post(std::function<void()> task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe::launch::serve::api
