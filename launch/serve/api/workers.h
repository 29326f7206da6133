// Workers: threads that read requests and encode their texts, so that long ones do not delay the
// threads of the HTTP server.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launch/serve/http/request.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::api {

/// Clients take turns: a client is an API key or, without keys, a connection. However many requests
/// one of them sends, each of the others waits for one request of each client at most.
class Workers {
 public:
  struct Limits {
    int threads = 1;
    int threads_per_client = 1;  ///< that requests of one client occupy at a time
    /// Requests that may wait; a client has half of the places at most.
    std::size_t waiting = 2048;
    /// Of a request, from its arrival to the end of its task. 0: none, and the task also runs when
    /// its client has disconnected.
    std::chrono::milliseconds deadline{30'000};
  };
  /// Throws std::system_error if a thread cannot be started.
  explicit Workers(const Limits& limits) : limits_(limits) { start(); }
  /// Cancels the running tasks, waits for them and drops the others.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// What it throws is answered as answer_failures() does.
  using Task = std::function<void(const http::Request&, const http::Responder&)>;
  /// Queues a task. While it runs, the thread has a WorkBudget (work_budget.h) with the deadline
  /// above, which is cancelled when the client disconnects; a request whose client disconnects
  /// before is dropped, and its body freed at once. Answers 429 if too many wait, 503 at the
  /// deadline. Replaces the responder's on_disconnect(), which the task may replace again.
  void post(http::Request request, http::Responder responder, Task task);

 private:
  struct Waiting;
  using WaitingPointer = std::shared_ptr<Waiting>;
  struct Client {
    std::deque<WaitingPointer> waiting;
    int running = 0;
  };

  void start();
  void end();
  bool add(const WaitingPointer& one);
  void run();
  /// The next request of the client whose turn it is; nullptr if no request may run.
  WaitingPointer next();
  void done(const WaitingPointer& one);

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Client> clients_;  // with requests
  std::deque<std::string> turns_;          // clients with waiting requests, each once
  std::size_t waiting_ = 0;
  std::vector<WaitingPointer> running_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::launch::serve::api
