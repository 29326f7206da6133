// Sharded<A>: a group as one actor on the node of rank 0. Each message goes to every rank, and each
// rank runs the same handler on its own A. Rank 0's reply is the group's; an error of any rank is
// the group's error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/group/follower_threads.h"
#include "actors/group/group_channel.h"
#include "actors/group/handler_table.h"
#include "actors/runtime/actor_ref.h"
#include "engine/parallel/grid.h"

namespace troupe::actors::group {

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
