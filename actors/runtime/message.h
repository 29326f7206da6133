// Message: an aggregate that an actor handles. It declares its name and reply type and lists its
// fields:
//
//   struct Generate {
//     using Reply = Experience;                       // or void
//     static constexpr std::string_view name = "generate";
//     std::vector<int> prompt; int group = 1;
//   };
//   inline auto fields(Generate& m) { return std::tie(m.prompt, m.group); }
//
// Within a process the fields are not used; the wire codec encodes, decodes and compares by them.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "actors/runtime/task.h"
#include "engine/base/errors/error.h"

namespace troupe::actors {

template <class M>
concept Message = std::movable<M> && requires(M& message) {
  typename M::Reply;
  { M::name } -> std::convertible_to<std::string_view>;
  { std::tuple_size<decltype(fields(message))>::value } -> std::convertible_to<std::size_t>;
};

/// A compute handler is a plain function (`R on(M)` or `Result<R> on(M)`) that runs on the actor's
/// engine executor. A handler that asks other actors is a coroutine (`Task<R> on(M)`) that runs on
/// the control executor and must not compute.
template <class A, class M>
concept Handles = Message<M> && requires(A& actor, M message) {
  requires std::same_as<decltype(actor.on(std::move(message))), typename M::Reply> ||
      std::same_as<decltype(actor.on(std::move(message))), Result<typename M::Reply>> ||
      std::same_as<decltype(actor.on(std::move(message))), Task<typename M::Reply>>;
};

/// A long computation in steps. `next` runs on the actor's engine executor, again and again, until
/// it returns the reply; it throws what a handler throws. Other jobs of the executor run between
/// two steps.
template <class R>
struct Stepwise {
  std::function<std::optional<R>()> next;
};

/// A compute handler that the actor offers in steps as well: `Stepwise<R> in_steps(M)`. Between two
/// of them the node handles the messages of the actor's `using Interrupting = Messages<...>`, which
/// do not wait behind the others in its mailbox.
template <class A, class M>
concept HandlesInSteps = Handles<A, M> && requires(A& actor, M message) {
  { actor.in_steps(std::move(message)) } -> std::same_as<Stepwise<typename M::Reply>>;
};

/// Messages that an actor class handles: `using Handled = Messages<Generate, CommitWeights>;`
template <Message... Ms>
struct Messages {};

/// Whether A handles M between the steps of another message.
template <class A, class M>
constexpr bool interrupts() {
  if constexpr (requires { typename A::Interrupting; })
    return []<class... Ms>(Messages<Ms...>) {
      return (std::same_as<M, Ms> || ...);
    }(typename A::Interrupting{});
  return false;
}

}  // namespace troupe::actors
