#include "launch/serve/api/workers.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "engine/base/threads/thread_with_blocked_signals.h"
#include "engine/base/threads/work_budget.h"
#include "launch/serve/api/answering.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

namespace {

WorkBudget::Clock::time_point deadline_after(std::chrono::milliseconds time) {
  return time.count() == 0 ? WorkBudget::Clock::time_point::max() : WorkBudget::Clock::now() + time;
}

/// Whose turn a request is.
std::string client_of(const http::Request& request) {
  return request.key.empty() ? "at " + request.client : "key " + request.key;
}

}  // namespace

struct Workers::Waiting {
  Waiting(http::Request from, http::Responder to, Task what, std::chrono::milliseconds time)
      : client(client_of(from)),
        budget(deadline_after(time)),
        request(std::move(from)),
        responder(std::move(to)),
        task(std::move(what)) {}

  /// For the first caller only: the worker, or the connection that ends.
  bool take() { return !taken.exchange(true); }
  void run() {
    const WorkBudget::Scope scope(budget);
    answer_failures(request, responder, [this] {
      value_or_throw(budget.check());
      task(request, responder);
    });
  }
  void drop() {
    budget.cancel();
    if (!take()) return;
    std::exchange(request, {});  // an assignment would keep the memory of the body
    task = nullptr;
  }

  const std::string client;
  WorkBudget budget;
  std::atomic<bool> taken = false;
  http::Request request;  // with what follows, of who has taken it
  http::Responder responder;
  Task task;
};

void Workers::start() {
  try {
    threads_.reserve(static_cast<std::size_t>(limits_.threads));
    for (int i = 0; i < limits_.threads; ++i)
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
    for (const WaitingPointer& one : running_) one->budget.cancel();
  }
  changed_.notify_all();
  for (std::thread& each : threads_) each.join();
}

void Workers::post(http::Request request, http::Responder responder, Task task) {
  const auto one =
      std::make_shared<Waiting>(std::move(request), responder, std::move(task), limits_.deadline);
  if (!add(one))
    return responder.respond(error_answer({Errc::full, "too many requests wait; try again later"}));
  changed_.notify_all();
}

bool Workers::add(const WaitingPointer& one) {
  const std::lock_guard lock(mutex_);
  const std::size_t of_client = std::max<std::size_t>(1, limits_.waiting / 2);
  const auto found = clients_.find(one->client);
  if (waiting_ >= limits_.waiting ||
      (found != clients_.end() && found->second.waiting.size() >= of_client))
    return false;
  // Before a task can run, which may replace it.
  if (limits_.deadline.count() != 0) {
    one->responder.on_disconnect([weak = std::weak_ptr<Waiting>(one)] {
      if (const auto gone = weak.lock()) gone->drop();
    });
  }
  Client& client = clients_[one->client];
  if (client.waiting.empty()) turns_.push_back(one->client);
  client.waiting.push_back(one);
  ++waiting_;
  return true;
}

Workers::WaitingPointer Workers::next() {
  const auto turn = std::ranges::find_if(turns_, [&](const std::string& name) {
    return clients_[name].running < limits_.threads_per_client;
  });
  if (turn == turns_.end()) return nullptr;
  Client& client = clients_[*turn];
  WaitingPointer one = std::move(client.waiting.front());
  client.waiting.pop_front();
  --waiting_;
  ++client.running;
  turns_.erase(turn);
  if (!client.waiting.empty()) turns_.push_back(one->client);
  running_.push_back(one);
  return one;
}

void Workers::done(const WaitingPointer& one) {
  std::erase(running_, one);
  const auto client = clients_.find(one->client);
  if (--client->second.running == 0 && client->second.waiting.empty()) clients_.erase(client);
}

void Workers::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    WaitingPointer one = next();
    if (one == nullptr) {
      changed_.wait_for(lock, std::chrono::seconds(1));
      continue;
    }
    lock.unlock();
    if (one->take()) one->run();
    lock.lock();
    done(one);
    changed_.notify_all();  // another request of this client may run
    lock.unlock();
    one.reset();  // what it holds ends without the lock
    lock.lock();
  }
}

}  // namespace troupe::launch::serve::api
