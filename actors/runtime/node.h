// Node: hosts actors. One control executor runs mailboxes, deadlines and coroutines, so it stays
// responsive during a training step; engine executors run compute handlers. With ThreadScheduler
// each executor is a thread; with VirtualScheduler all share one thread.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "actors/runtime/actor_ref.h"
#include "actors/runtime/ask_record.h"
#include "actors/runtime/behavior.h"
#include "actors/runtime/scheduler.h"
#include "transports/transport.h"

namespace troupe::actors {

/// Executor and queue limits of an actor.
struct ActorOptions {
  /// Executor of the compute handlers. Actors on the same executor take turns; others run in
  /// parallel.
  std::string executor = "engine";
  /// Capacity of the mailbox; a message that exceeds it is refused with Errc::full.
  std::size_t mailbox = 64;
  /// Messages handled concurrently. More than 1 requires that every handler is a coroutine, or that
  /// none is and the actor is a ConcurrentActor.
  std::size_t max_concurrency = 1;
};

/// An actor whose compute handlers may run on several threads at a time, and states on how many:
/// its max_concurrency, unless the options have a larger one.
template <class A>
concept ConcurrentActor = requires(const A& actor) {
  { actor.concurrency() } -> std::same_as<std::size_t>;
};

/// An actor that died of a programming error in a handler.
struct Death {
  transports::Address who;
  std::string death_reason;
};

struct NodeOptions {
  // Called on the control executor.
  std::function<void(const Death&)> on_death;
  std::function<void(const AskRecord&)> on_answered;  ///< for each reply to an ask of this node
  /// For each reply to an ask that has ended before; must not throw.
  std::function<void(transports::Frame)> on_late;
  std::function<void()> on_cancelled;  ///< by cancel_asks(): for those that wait for something else
};

/// Snapshot of the counters since the node was created.
struct NodeStats {
  std::uint64_t unexpected_answers = 0;  ///< replies that were late, forgotten or repeated
  std::uint64_t duplicate_requests = 0;  ///< repeated requests, which were ignored
  std::uint64_t refused = 0;             ///< requests refused by a full mailbox
  std::uint64_t undeliverable = 0;       ///< replies that the transport did not accept
};

class Node {
 public:
  /// `scheduler` and `transport` must outlive the node.
  Node(std::string name, Scheduler& scheduler, transports::Transport& transport,
       NodeOptions options = {});
  /// Calls stop().
  ~Node();
  Node(const Node&) = delete;

  /// Adds an actor: a plain class with `using Handled = Messages<...>` and a handler on(M) for
  /// each. Throws Bug for a name in use. Call it on the thread that created the node. stop()
  /// destroys the actors on their executors, in reverse order of spawning.
  template <class A>
  auto spawn(std::string name, A actor, ActorOptions options = {}) {
    return spawn(std::move(name), std::make_unique<A>(std::move(actor)), std::move(options));
  }
  template <class A>
  auto spawn(std::string name, std::unique_ptr<A> actor, ActorOptions options = {}) {
    if constexpr (ConcurrentActor<A>)
      options.max_concurrency = std::max(options.max_concurrency, actor->concurrency());
    install(name, behavior_of(std::shared_ptr<A>(std::move(actor)), typename A::Handled{}),
            {ConcurrentActor<A>, std::move(options)});
    return ref(transports::Address{this->name(), std::move(name)}, typename A::Handled{});
  }

  /// Returns a ref to an actor on any node. The caller states what it handles:
  /// `node.ref(address, Rollout::Handled{})`.
  template <Message... Ms>
  ActorRef<Ms...> ref(transports::Address to, Messages<Ms...>) {
    return ActorRef<Ms...>(asker(), std::move(to));
  }

  /// Returns a reply that arrives after `delay`: `auto pause = node.after(5s); co_await
  /// pause.get();`
  Reply<void> after(Duration delay);

  /// Completes every ask of this node, in flight or later, with Errc::cancelled. Callable on any
  /// thread.
  void cancel_asks();
  /// Cancels asks, refuses new requests (Errc::closed), waits for running handlers and destroys the
  /// actors. Idempotent. Call it on the thread that created the node.
  void stop();

  const std::string& name() const;
  Scheduler& scheduler() const;
  Executor& control() const;
  const std::shared_ptr<Asker>& asker() const;
  NodeStats stats() const;

 private:
  class Core;
  struct Placed {
    bool concurrent = false;  ///< compute handlers may run on several threads at a time
    ActorOptions options;
  };
  void install(const std::string& name, Behavior behavior, const Placed& placed);
  std::shared_ptr<Core> core_;
};

}  // namespace troupe::actors
