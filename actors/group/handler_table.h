// HandlerTable: the actors of a follower rank by name, and the loop that runs their handlers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "actors/group/group_channel.h"
#include "actors/runtime/message.h"
#include "engine/base/check.h"
#include "engine/base/text.h"
#include "transports/wire/codec.h"

namespace troupe::actors::group {

/// True for compute handlers of encodable messages. Every rank of a group runs them in the order of
/// the leader's messages; they cannot ask other actors.
template <class A, class M>
concept Computes = Handles<A, M> && transports::wire::encodable<M> &&
    !std::same_as<decltype(std::declval<A&>().on(std::declval<M>())), Task<typename M::Reply>>;

/// Returns the handler's reply; throws its error as Failure.
template <class A, class M>
typename M::Reply reply_of(A& actor, M message) {
  if constexpr (std::same_as<decltype(actor.on(std::move(message))), Result<typename M::Reply>>)
    return value_or_throw(actor.on(std::move(message)));
  else
    return actor.on(std::move(message));
}

class HandlerTable {
 public:
  /// `actor` must outlive this. `name` is the name of the leader's Sharded.
  template <class A>
  void add(const std::string& name, A& actor) {
    add_all(name, actor, typename A::Handled{});
  }

  /// Handles the leader's messages until the leader ends the group. The leader reports the errors
  /// of handlers. Throws Bug, with the message of the rank that failed, when the group ended
  /// otherwise.
  void serve(GroupChannel& channel) const;

 private:
  using Handler = std::function<void(GroupChannel& channel, const GroupCall& call)>;

  template <class A, Message... Ms>
  void add_all(const std::string& name, A& actor, Messages<Ms...>) {
    static_assert((Computes<A, Ms> && ...),
                  "an actor of a group may have only compute handlers of encodable messages");
    check(!actors_.contains(name), "two actors of a group have the same name");
    (actors_[name].emplace(std::string(Ms::name),
                           [&actor](GroupChannel& channel, const GroupCall& call) {
                             run<A, Ms>(channel, actor, call);
                           }),
     ...);
  }
  template <class A, class M>
  static void run(GroupChannel& channel, A& actor, const GroupCall& call) {
    M message{};
    channel.run_on_all_ranks(call.type, [&] {
      message = transports::wire::decode<M>(call.body, cat("message '", call.type, "'"));
    });
    channel.run_on_all_ranks(call.type, [&] { reply_of(actor, std::move(message)); });
  }

  std::map<std::string, std::map<std::string, Handler>> actors_;
};

}  // namespace troupe::actors::group
