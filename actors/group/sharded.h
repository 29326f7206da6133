// Sharded<A>: a group as its node sees it, one actor with one mailbox, at rank 0. Each message goes
// to every rank, each runs the same handler on its own A; rank 0's answer is the group's, an error
// of any rank is the group's error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/group/handler_table.h"
#include "actors/group/group_channel.h"
#include "actors/group/follower_threads.h"
#include "actors/runtime/actor_ref.h"
#include "engine/parallel/grid.h"

namespace troupe::actors::group {

template <class A>
class Sharded {
 public:
  using Handled = typename A::Handled;

  /// Rank 0's A. `followers`, when given, is destroyed after the line has told them to end.
  Sharded(std::string name, std::shared_ptr<Line> line, std::unique_ptr<A> actor,
          std::unique_ptr<ThreadFollowers> followers = nullptr)
      : name_(std::move(name)),
        followers_(std::move(followers)),
        line_(std::move(line)),
        actor_(std::move(actor)) {}

  template <class M>
  requires Computes<A, M> Result<typename M::Reply> on(M message) {
    using Reply = typename M::Reply;
    const Line::Turn turn(*line_);
    if (line_->size() > 1) send(message);
    if constexpr (std::is_void_v<Reply>) {
      line_->together(M::name, [&] { answer_of(*actor_, std::move(message)); });
      return {};
    } else {
      std::optional<Reply> reply;
      line_->together(M::name, [&] { reply.emplace(answer_of(*actor_, std::move(message))); });
      return std::move(*reply);
    }
  }

 private:
  /// Returns when every follower has the message in hand.
  template <class M>
  void send(const M& message) {
    // The encoded parts point into the message, which stays where it is until all have them.
    const auto nobody = std::shared_ptr<const void>(std::shared_ptr<const void>(), &message);
    line_->send({name_, std::string(M::name), transports::wire::encode(message, nobody)});
    line_->together(M::name, [] {});
  }

  std::string name_;
  std::unique_ptr<ThreadFollowers>
      followers_;  // before the line: it is joined after the line's end
  std::shared_ptr<Line> line_;
  std::unique_ptr<A> actor_;
};

/// Makes an A on each of `grid.ranks()` threads of this process, all at the same time: rank 0's on
/// the calling thread. `make` takes the rank's Mesh; what it throws (Failure) on any rank is the
/// error. Errc::usage for a grid without ranks.
template <class A, class Make>
Result<std::unique_ptr<Sharded<A>>> shard_over_threads(
    const std::string& name, engine::parallel::Grid grid, const Make& make,
    engine::parallel::ThreadGroupOptions options = {}) {
  using engine::parallel::Communicator, engine::parallel::Mesh;
  RETURN_IF_ERROR(engine::parallel::check_fits(grid, grid.ranks()));
  const auto built = [make, grid](Communicator& world, Line& line) {
    std::unique_ptr<A> actor;
    line.together("making the actor", [&] {
      actor = make(value_or_throw(Mesh::create(world.split(0, world.rank()), grid)));
    });
    return actor;
  };
  const auto work = [name, built](Communicator& world) {
    Line line(world.split(0, world.rank()));
    const std::unique_ptr<A> actor = built(world, line);
    Followed followed;
    followed.add(name, *actor);
    follow(line, followed);
  };
  try {
    auto followers = std::make_unique<ThreadFollowers>(grid.ranks(), options, work);
    Communicator& world = followers->leader();
    auto line = std::make_shared<Line>(world.split(0, world.rank()));
    auto actor = built(world, *line);
    return std::make_unique<Sharded<A>>(name, std::move(line), std::move(actor),
                                        std::move(followers));
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

}  // namespace troupe::actors::group
