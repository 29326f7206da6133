// Task<T>: a coroutine that starts when it is awaited. Tasks run on one control executor and need
// no lock. Task is not asio::awaitable, so that files that only ask do not include Asio, and so
// that a virtual scheduler can run the same coroutines. An awaited task that ends without
// suspending uses no stack: await_suspend() resumes it and checks whether it is done.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "engine/base/errors/check.h"

namespace troupe::actors {

template <class T = void>
class Task;

/// Base of the promises of all tasks: the awaiting coroutine and the exception that ended the task.
class TaskPromiseBase {
 public:
  struct Final {
    bool await_ready() noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> ended) noexcept {
      // The awaiter owns this frame and may destroy it in resume(): the frame is not used after it.
      if (const auto waiter = ended.promise().waiter_) waiter.resume();
    }
    void await_resume() noexcept {}
  };
  std::suspend_always initial_suspend() noexcept { return {}; }
  Final final_suspend() noexcept { return {}; }
  void unhandled_exception() { thrown_ = std::current_exception(); }
  void wake(std::coroutine_handle<> waiter) { waiter_ = waiter; }

 protected:
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::coroutine_handle<> waiter_;
  std::exception_ptr thrown_;
};

template <class T>
class TaskPromise : public TaskPromiseBase {
 public:
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class TaskPromise<void> : public TaskPromiseBase {
 public:
  Task<void> get_return_object();
  void return_void() {}
  void take() const { rethrow(); }
};

/// A lazy coroutine. Await it once: `auto x = co_await work(a);`
/// (docs/decisions/0013-co-await-forms.md lists the forms to avoid). Destroying it destroys the
/// coroutine that it awaits.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = TaskPromise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  class Awaiter {
   public:
    explicit Awaiter(Handle handle) : handle_(handle) {}
    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) {
      handle_.resume();
      if (handle_.done()) return false;
      handle_.promise().wake(waiter);
      return true;
    }
    T await_resume() { return handle_.promise().take(); }

   private:
    Handle handle_;
  };
  Awaiter operator co_await() const {
    check(handle_ && !handle_.done(), "a task can be awaited only once");
    return Awaiter(handle_);
  }

 private:
  Handle handle_;
};

template <class T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

}  // namespace troupe::actors
