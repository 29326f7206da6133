// ActorRef<Ms...>: an actor's address, typed by the messages that the actor handles. Algorithms use
// nothing else of the runtime to reach actors.
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

/// Default deadline of an ask: long enough for a training step on a slow machine.
inline constexpr std::chrono::steady_clock::duration default_deadline = std::chrono::minutes(10);

/// Untyped implementation of ask(), in asker.cpp.
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

  /// Converts from a ref that handles more messages.
  template <Message... Others>
  requires(OneOf<Ms, Others...>&&...) ActorRef(const ActorRef<Others...>& other)
      : asker_(other.asker()), to_(other.address()) {}

  /// Sends the message now; the reply is awaited later. Two asks on consecutive lines run
  /// concurrently. Call it only from coroutines of the ref's node. A full mailbox refuses the
  /// message (Errc::full).
  template <OneOf<Ms...> M>
  Reply<typename M::Reply> ask(
      M message, std::chrono::steady_clock::duration deadline = default_deadline) const {
    return Reply<typename M::Reply>(
        send_ask(*asker_, to_, M::name, transports::Body::of(std::move(message)), deadline));
  }

  /// The actor in one process that has the node's place (transports::Address).
  ActorRef of_incarnation(std::uint64_t number) const {
    return ActorRef(asker_, {to_.node, to_.actor, number});
  }
  const transports::Address& address() const { return to_; }
  const std::shared_ptr<Asker>& asker() const { return asker_; }

 private:
  std::shared_ptr<Asker> asker_;
  transports::Address to_;
};

}  // namespace troupe::actors
