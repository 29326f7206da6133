// Changes: wakes coroutines that wait until shared state has changed.
#pragma once

#include <coroutine>
#include <cstdint>
#include <list>

namespace troupe::actors {

/// For coroutines of one control executor that share state:
///
///     while (!ready()) co_await changes.next();   // the reader
///     set_ready(); changes.notify();              // the writer
class Changes {
 public:
  Changes() = default;
  Changes(const Changes&) = delete;

  class Wait {
   public:
    explicit Wait(Changes& changes) : changes_(&changes) {}
    Wait(const Wait&) = delete;
    ~Wait() {
      if (waiter_) changes_->waiting_.remove(this);  // destroyed while it waits
    }
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      waiter_ = waiter;
      since_ = changes_->notified_;
      changes_->waiting_.push_back(this);
    }
    void await_resume() const {}

   private:
    friend class Changes;
    Changes* changes_;
    std::coroutine_handle<> waiter_;
    std::uint64_t since_ = 0;
  };
  Wait next() { return Wait(*this); }

  /// Resumes the coroutines that wait now, in the order in which they began to. Those that wait
  /// again stay.
  void notify() {
    const std::uint64_t now = ++notified_;
    while (!waiting_.empty() && waiting_.front()->since_ < now) {
      Wait* first = waiting_.front();
      waiting_.pop_front();
      const auto waiter = first->waiter_;
      first->waiter_ = {};
      waiter.resume();
    }
  }

 private:
  std::list<Wait*> waiting_;
  std::uint64_t notified_ = 0;
};

}  // namespace troupe::actors
