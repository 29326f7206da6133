// run(): runs one coroutine from main() to completion.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "actors/runtime/detached.h"
#include "actors/runtime/node.h"
#include "actors/runtime/stop.h"
#include "actors/runtime/task.h"

namespace troupe::actors {

template <class T>
struct RunningTask {
  std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>> value;
  CaughtException ending;
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
};

template <class T>
Detached run_to_completion(Task<T> task, std::shared_ptr<RunningTask<T>> started) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await task;
      started->value.emplace();
    } else {
      started->value = co_await task;
    }
  } catch (...) {
    started->ending = caught_exception();
  }
  started->promise.set_value();
}

/// Starts a coroutine on the node's control executor; `done` becomes ready when it ends.
template <class T>
std::shared_ptr<RunningTask<T>> start(Node& node, Task<T> task) {
  auto started = std::make_shared<RunningTask<T>>();
  auto shared = std::make_shared<Task<T>>(std::move(task));
  node.control().post([started, shared] { run_to_completion(std::move(*shared), started); });
  return started;
}

/// Returns the task's value or throws its Failure or Bug.
template <class T>
T finish(RunningTask<T>& started) {
  if (started.ending.failure) throw Failure(std::move(*started.ending.failure));
  if (started.ending.bug) throw Bug(*started.ending.bug);
  if constexpr (!std::is_void_v<T>) return std::move(*started.value);
}

/// Runs a coroutine to completion. Blocks the caller, which must not be on an executor. `stop`,
/// when given, is polled; a second request cancels the asks in flight. With a VirtualScheduler, a
/// task that can never continue is a Bug.
template <class T>
T run(Node& node, Task<T> task, const Stop* stop = nullptr) {
  auto started = start(node, std::move(task));
  bool cancelled = false;
  node.scheduler().drive(started->done, [&] {
    if (cancelled || !stop || !stop->urgent()) return;
    cancelled = true;
    node.cancel_asks();
  });
  return finish(*started);
}

}  // namespace troupe::actors
