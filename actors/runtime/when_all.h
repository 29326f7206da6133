// Concurrent operations of one control executor: Gate counts them, when_all() runs several tasks.
#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>
#include <vector>

#include "actors/runtime/task.h"
#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"

namespace troupe::actors {

/// Counts the operations in progress, refuses new ones once closing, and waits for the last one to
/// finish (after seastar's gate). For coroutines of one control executor.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  ~Gate() noexcept(false) {
    check(inside_ == 0, "a gate was destroyed with operations in progress; close it first");
  }

  class Holder {
   public:
    explicit Holder(Gate& gate) : gate_(&gate) { ++gate.inside_; }
    Holder(Holder&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Holder& operator=(Holder&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Holder() {
      if (gate_) gate_->leave();
    }

   private:
    Gate* gate_;
  };

  /// Errc::closed once close() was called.
  Result<Holder> enter() {
    if (closing_) return fail(Errc::closed, "the gate is closed");
    return Holder(*this);
  }
  std::size_t inside() const { return inside_; }

  class Closing {
   public:
    explicit Closing(Gate& gate) : gate_(&gate) {}
    bool await_ready() const { return gate_->inside_ == 0; }
    void await_suspend(std::coroutine_handle<> waiter) { gate_->waiter_ = waiter; }
    void await_resume() const {}

   private:
    Gate* gate_;
  };
  /// `co_await gate.close();` refuses new entries and waits until all holders are gone. Callable
  /// once.
  Closing close() {
    check(!closing_, "a gate can be closed only once");
    closing_ = true;
    return Closing(*this);
  }

 private:
  void leave() {
    if (--inside_ > 0) return;
    if (const auto waiter = std::exchange(waiter_, {})) waiter.resume();
  }

  std::size_t inside_ = 0;
  bool closing_ = false;
  std::coroutine_handle<> waiter_;
};

/// Starts all tasks in order, each up to its first suspension, and ends when all have ended. Then
/// rethrows the exception of the first failed task. Objects that the tasks refer to must outlive
/// them.
Task<void> when_all(std::vector<Task<void>> tasks);

}  // namespace troupe::actors
