// Reply<T>: an answer that is on its way. ask() returns one at once; `co_await reply.get()` marks
// the wait.
#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "transports/body.h"

namespace troupe::actors {

class Asker;

/// What a Reply and the table of asks share. Only the control executor touches it.
struct ReplyState {
  std::optional<Result<transports::Body>>
      outcome;  ///< set once: the answer, an error, a timeout, or cancelled
  std::coroutine_handle<> waiter;
  std::weak_ptr<Asker> asker;
  std::uint64_t id = 0;
  bool taken = false;
};

/// Drops the ask from its node's table: a late answer is then counted and dropped.
void forget(ReplyState& state);

/// One answer. Belongs to the coroutine that asked; its destructor forgets the ask (the handler
/// still runs to its end).
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
      check(!state.taken && !state.waiter, "a reply is awaited once");
    }
    TryWait(const TryWait&) = delete;
    ~TryWait() { state_->waiter = {}; }  // a coroutine destroyed while it waits is not resumed
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

  /// `auto x = co_await reply.get();` the answer, or Failure with the error of try_get(). On a
  /// named reply only: g++ 12.2 double-frees some temporaries of a co_await expression.
  Wait get() & { return Wait(*state_); }
  Wait get() && = delete;

  /// `auto x = co_await reply.try_get();` Result<T>: the handler's own error, or Errc::timeout (no
  /// answer by the deadline), full (the mailbox refused), closed (the actor or its node has ended),
  /// internal (it ended by this message), not_found (no such actor), unsupported (no such handler),
  /// cancelled (this node is stopping).
  TryWait try_get() & { return TryWait(*state_); }
  TryWait try_get() && = delete;

  /// True when get() will not wait.
  bool ready() const { return state_->outcome.has_value(); }

 private:
  std::shared_ptr<ReplyState> state_;
};

}  // namespace troupe::actors
