// Followed: the actors that a follower runs, by name; and the loop in which it runs them.
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

/// Handlers of a group compute: they run on every rank, in the order of the leader's messages, and
/// ask nobody.
template <class A, class M>
concept Computes = Handles<A, M> && transports::wire::encodable<M> &&
    !std::same_as<decltype(std::declval<A&>().on(std::declval<M>())), Task<typename M::Reply>>;

/// The handler's answer; an error as Failure.
template <class A, class M>
typename M::Reply answer_of(A& actor, M message) {
  if constexpr (std::same_as<decltype(actor.on(std::move(message))), Result<typename M::Reply>>)
    return value_or_throw(actor.on(std::move(message)));
  else
    return actor.on(std::move(message));
}

class Followed {
 public:
  /// `actor` outlives this. Its name is the one that the leader's Sharded has.
  template <class A>
  void add(const std::string& name, A& actor) {
    add_all(name, actor, typename A::Handled{});
  }

 private:
  friend void follow(Line& line, const Followed& followed);
  using Work = std::function<void(Line& line, const Call& call)>;

  template <class A, Message... Ms>
  void add_all(const std::string& name, A& actor, Messages<Ms...>) {
    static_assert((Computes<A, Ms> && ...),
                  "actors of a group have compute handlers only, for messages that can be encoded");
    check(!works_.contains(name), "two actors of a group have the same name");
    (works_[name].emplace(
         std::string(Ms::name),
         [&actor](Line& line, const Call& call) { run<A, Ms>(line, actor, call); }),
     ...);
  }
  template <class A, class M>
  static void run(Line& line, A& actor, const Call& call) {
    M message{};
    line.together(call.type, [&] {
      message = transports::wire::decode<M>(call.body, cat("message '", call.type, "'"));
    });
    line.together(call.type, [&] { answer_of(actor, std::move(message)); });
  }

  std::map<std::string, std::map<std::string, Work>> works_;
};

/// The life of a follower: handles what the leader passes on, until it ends. Errors of handlers are
/// the leader's to answer. Throws Bug when the group ended in another way, with the words of the
/// rank that ended it.
void follow(Line& line, const Followed& followed);

}  // namespace troupe::actors::group
