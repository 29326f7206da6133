// Sharded<A>: a group as one actor on the node of rank 0. Each message goes to every rank, and each
// rank runs the same handler on its own A. Rank 0's reply is the group's; an error of any rank is
// the group's error.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "actors/group/group_channel.h"
#include "actors/runtime/actor_ref.h"
#include "actors/runtime/message.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/parallel/grid.h"
#include "engine/parallel/thread_group.h"
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

/// The actors of a follower rank by name, and the loop that runs their handlers.
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

/// The threads of ranks 1 to n-1 of a group within one process.
class FollowerThreads {
 public:
  /// Runs `work` on a thread for each rank except 0. An exception that leaves it ends the group
  /// with its message.
  FollowerThreads(int ranks, engine::parallel::ThreadGroupOptions options,
                  const std::function<void(engine::parallel::Communicator& world)>& work);
  /// Joins the threads. The group must have ended, or be about to; destroying the leader's
  /// communicator ends it otherwise.
  ~FollowerThreads();
  FollowerThreads(const FollowerThreads&) = delete;

  /// Rank 0's communicator.
  engine::parallel::Communicator& leader() { return *leader_; }

 private:
  void end();
  std::unique_ptr<engine::parallel::Communicator> leader_;
  std::vector<std::thread> threads_;
};

template <class A>
class Sharded {
 public:
  using Handled = typename A::Handled;

  /// `actor` is rank 0's. `followers`, when given, is destroyed after the channel has ended the
  /// group.
  Sharded(std::string name, std::shared_ptr<GroupChannel> channel, std::unique_ptr<A> actor,
          std::unique_ptr<FollowerThreads> followers = nullptr)
      : name_(std::move(name)),
        followers_(std::move(followers)),
        channel_(std::move(channel)),
        actor_(std::move(actor)) {}

  template <class M>
  requires Computes<A, M> Result<typename M::Reply> on(M message) {
    using Reply = typename M::Reply;
    const GroupChannel::ExclusiveCall exclusive(*channel_);
    if (channel_->size() > 1) send(message);
    if constexpr (std::is_void_v<Reply>) {
      channel_->run_on_all_ranks(M::name, [&] { reply_of(*actor_, std::move(message)); });
      return {};
    } else {
      std::optional<Reply> reply;
      channel_->run_on_all_ranks(M::name,
                                 [&] { reply.emplace(reply_of(*actor_, std::move(message))); });
      return std::move(*reply);
    }
  }

 private:
  /// Returns when every follower has received the message.
  template <class M>
  void send(const M& message) {
    // The encoded parts point into the message, which stays alive until all ranks have received it.
    const auto no_owner = std::shared_ptr<const void>(std::shared_ptr<const void>(), &message);
    channel_->send({name_, std::string(M::name), transports::wire::encode(message, no_owner)});
    channel_->run_on_all_ranks(M::name, [] {});
  }

  std::string name_;
  // Declared before the channel, so that it is joined after the channel has ended the group.
  std::unique_ptr<FollowerThreads> followers_;
  std::shared_ptr<GroupChannel> channel_;
  std::unique_ptr<A> actor_;
};

/// Creates an A on each of `grid.ranks()` threads of this process concurrently, rank 0's on the
/// calling thread. `make` takes the rank's Mesh; a Failure on any rank is the error. Errc::usage
/// for a grid without ranks.
template <class A, class Make>
Result<std::unique_ptr<Sharded<A>>> shard_over_threads(
    const std::string& name, engine::parallel::Grid grid, const Make& make,
    engine::parallel::ThreadGroupOptions options = {}) {
  using engine::parallel::Communicator, engine::parallel::Mesh;
  RETURN_IF_ERROR(engine::parallel::check_fits(grid, grid.ranks()));
  const auto built = [make, grid](Communicator& world, GroupChannel& channel) {
    std::unique_ptr<A> actor;
    channel.run_on_all_ranks("creating the actor", [&] {
      actor = make(value_or_throw(Mesh::create(world.split(0, world.rank()), grid)));
    });
    return actor;
  };
  const auto work = [name, built](Communicator& world) {
    GroupChannel channel(world.split(0, world.rank()));
    const std::unique_ptr<A> actor = built(world, channel);
    HandlerTable handlers;
    handlers.add(name, *actor);
    handlers.serve(channel);
  };
  try {
    auto followers = std::make_unique<FollowerThreads>(grid.ranks(), options, work);
    Communicator& world = followers->leader();
    auto channel = std::make_shared<GroupChannel>(world.split(0, world.rank()));
    auto actor = built(world, *channel);
    return std::make_unique<Sharded<A>>(name, std::move(channel), std::move(actor),
                                        std::move(followers));
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

}  // namespace troupe::actors::group
