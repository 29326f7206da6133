// Reply<T>: a pending reply. ask() returns one immediately; `co_await reply.get()` waits for it.
#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/errors/error.h"
#include "transports/body.h"

namespace troupe::actors {

class Asker;

/// State shared by a Reply and the table of asks. Used only on the control executor.
struct ReplyState {
  /// Set once: the reply, an error, a timeout, or cancelled.
  std::optional<Result<transports::Body>> outcome;
  std::coroutine_handle<> waiter;
  std::weak_ptr<Asker> asker;
  std::uint64_t id = 0;
  bool taken = false;
};

/// Removes the ask from its node's table; a late reply is then counted and dropped.
void forget(ReplyState& state);

/// One reply, owned by the coroutine that asked. Its destructor forgets the ask; the handler still
/// runs to completion.
template <class T>
class [[nodiscard]] Reply {
 public:
  explicit Reply(std::shared_ptr<ReplyState> state) : state_(std::move(state)) {}
  Reply(Reply&& other) noexcept = default;
  Reply& operator=(Reply&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Reply() {
    if (state_) forget(*state_);
  }

  class TryWait {
   public:
    explicit TryWait(ReplyState& state) : state_(&state) {
      check(!state.taken && !state.waiter, "a reply can be awaited only once");
    }
    TryWait(const TryWait&) = delete;
    ~TryWait() { state_->waiter = {}; }  // a coroutine destroyed while waiting is not resumed
    bool await_ready() const { return state_->outcome.has_value(); }
    void await_suspend(std::coroutine_handle<> waiter) { state_->waiter = waiter; }
    Result<T> await_resume() {
      state_->taken = true;
      Result<transports::Body>& outcome = *state_->outcome;
      RETURN_IF_ERROR(outcome);
      if constexpr (std::is_void_v<T>)
        return {};
      else
        return outcome->template try_take<T>();
    }

   private:
    ReplyState* state_;
  };
  class Wait : public TryWait {
   public:
    using TryWait::TryWait;
    T await_resume() { return value_or_throw(TryWait::await_resume()); }
  };

  /// `auto x = co_await reply.get();` returns the reply or throws Failure with the error of
  /// try_get(). Callable only on a named reply, because ask() sends when it is called, not when it
  /// is awaited.
  Wait get() & { return Wait(*state_); }
  Wait get() && = delete;

  /// `auto x = co_await reply.try_get();` returns a Result<T> with the handler's own error, or
  /// Errc::timeout (no reply by the deadline), full (the mailbox is full), closed (the actor or its
  /// node has ended), internal (the actor died of this message), not_found (no such actor),
  /// unsupported (no such handler), cancelled (this node is stopping).
  TryWait try_get() & { return TryWait(*state_); }
  TryWait try_get() && = delete;

  /// True when get() will not suspend.
  bool ready() const { return state_->outcome.has_value(); }

 private:
  std::shared_ptr<ReplyState> state_;
};

}  // namespace troupe::actors
