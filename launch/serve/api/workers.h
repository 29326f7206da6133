// Workers: threads that read requests and encode their texts, so that long ones do not delay the
// threads of the HTTP server.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::launch::api {

class Workers {
 public:
  /// Throws std::system_error if a thread cannot be started.
  Workers(int threads, std::size_t max_waiting);
  /// Waits for the running tasks and drops the others.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Queues a task, which must not throw. False if max_waiting tasks wait: the task is not run.
  bool post(std::function<void()> task);

 private:
  void run();
  void end();

  std::size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::launch::api
