// ActorRef<Ms...>: an actor's address, typed by what may be said to it. This is all that an
// algorithm sees of the runtime.
#pragma once

#include <chrono>
#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include "actors/runtime/message.h"
#include "actors/runtime/reply.h"
#include "transports/transport.h"

namespace troupe::actors {

/// Long enough for a training step on a slow machine; every wait has one.
inline constexpr std::chrono::steady_clock::duration default_deadline = std::chrono::minutes(10);

/// The untyped half of ask(), in asker.cpp.
std::shared_ptr<ReplyState> send_ask(Asker& asker, const transports::Address& to,
                                     std::string_view type, transports::Body body,
                                     std::chrono::steady_clock::duration deadline);

template <class M, class... Others>
concept OneOf = (std::same_as<M, Others> || ...);

template <Message... Ms>
class ActorRef {
 public:
  ActorRef(std::shared_ptr<Asker> asker, transports::Address to)
      : asker_(std::move(asker)), to_(std::move(to)) {}

  /// A ref that may say more converts to one that may say less.
  template <Message... Others>
  requires(OneOf<Ms, Others...>&&...) ActorRef(const ActorRef<Others...>& other)
      : asker_(other.asker()), to_(other.address()) {}

  /// The message leaves now; the answer is awaited later. Two asks on consecutive lines run at the
  /// same time. Only from coroutines of the ref's node. A mailbox that is full refuses
  /// (Errc::full).
  template <OneOf<Ms...> M>
  Reply<typename M::Reply> ask(
      M message, std::chrono::steady_clock::duration deadline = default_deadline) const {
    return Reply<typename M::Reply>(
        send_ask(*asker_, to_, M::name, transports::Body::of(std::move(message)), deadline));
  }

  const transports::Address& address() const { return to_; }
  const std::shared_ptr<Asker>& asker() const { return asker_; }

 private:
  std::shared_ptr<Asker> asker_;
  transports::Address to_;
};

}  // namespace troupe::actors
