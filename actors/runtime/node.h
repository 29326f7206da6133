// Node: a place where actors live. One control executor (mailboxes, deadlines, coroutines;
// heartbeats tick during a step) and engine executors on which compute handlers run. Over
// ThreadScheduler an executor is a thread; over VirtualScheduler all is one thread.
#pragma once

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

/// Where an actor's compute handlers run, and how much may wait for it.
struct Placement {
  std::string executor = "engine";  ///< actors that name the same executor share its thread;
                                    ///< another name: work at the same time
  std::size_t mailbox =
      64;  ///< messages waiting beyond those being handled; one more is refused with Errc::full
  std::size_t max_concurrency =
      1;  ///< messages handled at the same time; more than 1 only when every handler is a coroutine
};

/// An actor that ended by a mistake of ours.
struct Death {
  transports::Address who;
  std::string death_reason;
};

struct NodeOptions {
  std::function<void(const Death&)> on_death;  ///< called on the control executor
  std::function<void(const AskRecord&)>
      on_answered;  ///< called on the control executor, for each answer to an ask of this node
};

/// Counters since the node began; a snapshot.
struct NodeStats {
  std::uint64_t unexpected_answers =
      0;  ///< answers that nobody waited for: late, forgotten or repeated
  std::uint64_t duplicate_requests = 0;  ///< requests that arrived again; not handled again
  std::uint64_t refused = 0;             ///< requests that a full mailbox refused
  std::uint64_t undeliverable = 0;       ///< answers that the transport would not take
};

class Node {
 public:
  /// `scheduler` and `transport` outlive the node.
  Node(std::string name, Scheduler& scheduler, transports::Transport& transport,
       NodeOptions options = {});
  /// Stops.
  ~Node();
  Node(const Node&) = delete;

  /// Takes an actor in: a plain class with `using Handled = Messages<...>` and a handler on(M) for
  /// each. A name taken is a Bug. From the thread that made the node. The actor is destroyed on its
  /// executor, in the reverse order of spawning, by stop().
  template <class A>
  auto spawn(std::string name, A actor, Placement placement = {}) {
    return spawn(std::move(name), std::make_unique<A>(std::move(actor)), std::move(placement));
  }
  template <class A>
  auto spawn(std::string name, std::unique_ptr<A> actor, Placement placement = {}) {
    install(name, behavior_of(std::shared_ptr<A>(std::move(actor)), typename A::Handled{}),
            std::move(placement));
    return ref(transports::Address{this->name(), std::move(name)}, typename A::Handled{});
  }

  /// A ref to an actor that lives anywhere; what it handles is promised by the caller:
  /// `node.ref(address, Rollout::Handled{})`.
  template <Message... Ms>
  ActorRef<Ms...> ref(transports::Address to, Messages<Ms...>) {
    return ActorRef<Ms...>(asker(), std::move(to));
  }

  /// Time passing, as a reply: `auto pause = node.after(5s); co_await pause.get();`
  Reply<void> after(Duration delay);

  /// Ends what is in flight: every ask of this node, now and later, gets Errc::cancelled. From any
  /// thread.
  void cancel_asks();
  /// cancel_asks(), refuses new requests (Errc::closed), waits for the running handlers, ends the
  /// actors. Once; from the thread that made the node.
  void stop();

  const std::string& name() const;
  Scheduler& scheduler() const;
  Executor& control() const;
  const std::shared_ptr<Asker>& asker() const;
  NodeStats stats() const;

 private:
  class Core;
  void install(const std::string& name, Behavior behavior, Placement placement);
  std::shared_ptr<Core> core_;
};

}  // namespace troupe::actors
