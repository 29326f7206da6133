// Behavior: the type-erased form of an actor: a table from message name to handler.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/runtime/message.h"
#include "transports/body.h"

namespace troupe::actors {

/// Exactly one of the three functions is set.
struct Handler {
  std::function<transports::Body(transports::Body)> compute;  ///< runs on the engine executor
  /// Begins a computation in steps; runs on the engine executor, as its steps do.
  std::function<Stepwise<transports::Body>(transports::Body)> begin;
  /// Runs on the control executor.
  std::function<Task<transports::Body>(transports::Body)> run_async;
  bool interrupts = false;  ///< handled between the steps of another message

  bool computes() const { return compute || begin; }
};

/// Owns the actor, which the handlers share. Handlers throw what the actor throws: Failure for
/// external errors, Bug for programming errors.
using Behavior = std::map<std::string, Handler, std::less<>>;

template <class A, class M>
transports::Body compute(A& actor, transports::Body body) {
  using Answer = typename M::Reply;
  using Returned = decltype(actor.on(std::declval<M>()));
  if constexpr (std::is_same_v<Returned, Result<Answer>> && std::is_void_v<Answer>)
    value_or_throw(actor.on(body.take<M>()));
  else if constexpr (std::is_same_v<Returned, Result<Answer>>)
    return transports::Body::of<Answer>(value_or_throw(actor.on(body.take<M>())));
  else if constexpr (std::is_void_v<Answer>)
    actor.on(body.take<M>());
  else
    return transports::Body::of<Answer>(actor.on(body.take<M>()));
  if constexpr (std::is_void_v<Answer>) return {};
}

template <class A, class M>
Task<transports::Body> run_async(A& actor, transports::Body body) {
  M message = body.take<M>();
  if constexpr (std::is_void_v<typename M::Reply>) {
    co_await actor.on(std::move(message));
    co_return transports::Body();
  } else {
    typename M::Reply reply = co_await actor.on(std::move(message));
    co_return transports::Body::of(std::move(reply));
  }
}

template <class A, class M>
Stepwise<transports::Body> begin(A& actor, transports::Body body) {
  auto steps = actor.in_steps(body.take<M>());
  return {[next = std::move(steps.next)]() -> std::optional<transports::Body> {
    std::optional<typename M::Reply> reply = next();
    if (!reply) return std::nullopt;
    return transports::Body::of(std::move(*reply));
  }};
}

template <class M, class A>
requires Handles<A, M> Handler handler_of(const std::shared_ptr<A>& actor) {
  Handler handler;
  handler.interrupts = interrupts<A, M>();
  if constexpr (HandlesInSteps<A, M>)
    handler.begin = [actor](transports::Body body) { return begin<A, M>(*actor, std::move(body)); };
  else if constexpr (std::is_same_v<decltype(actor->on(std::declval<M>())),
                                    Task<typename M::Reply>>)
    handler.run_async = [actor](transports::Body body) {
      return run_async<A, M>(*actor, std::move(body));
    };
  else
    handler.compute = [actor](transports::Body body) {
      return compute<A, M>(*actor, std::move(body));
    };
  return handler;
}

template <class A, class... Ms>
Behavior behavior_of(const std::shared_ptr<A>& actor, Messages<Ms...>) {
  Behavior behavior;
  (behavior.emplace(std::string(Ms::name), handler_of<Ms>(actor)), ...);
  check(behavior.size() == sizeof...(Ms), "two messages of an actor have the same name");
  return behavior;
}

}  // namespace troupe::actors
