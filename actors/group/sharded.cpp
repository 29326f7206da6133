#include "actors/group/sharded.h"

#include <exception>
#include <optional>

#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"

namespace troupe::actors::group {

void HandlerTable::serve(GroupChannel& channel) const {
  while (const std::optional<GroupCall> call = channel.next()) {
    const progress::Operation watched(call->actor);
    try {
      const auto actor = actors_.find(call->actor);
      if (actor != actors_.end() && actor->second.contains(call->type)) {
        actor->second.find(call->type)->second(channel, *call);
      } else {
        channel.run_on_all_ranks(call->type, [&] {
          throw Failure(Error{Errc::not_found, cat("there is no actor '", call->actor,
                                                   "' that handles '", call->type, "'")});
        });
      }
    } catch (const Failure&) {
      // run_on_all_ranks() throws it on every rank; the leader replies with it.
    }
  }
}

using engine::parallel::Communicator;

FollowerThreads::FollowerThreads(int ranks, engine::parallel::ThreadGroupOptions options,
                                 const std::function<void(Communicator& world)>& work) {
  engine::parallel::ThreadGroup group(ranks, options);
  leader_ = group.rank(0);
  threads_.reserve(static_cast<std::size_t>(ranks));
  const auto follow = [&work](int rank, std::shared_ptr<Communicator> world) {
    return [rank, work, world = std::move(world)] {
      const progress::ThreadScope watched(cat("rank ", rank));
      try {
        work(*world);
      } catch (const std::exception& error) {
        // Ends the leader's actor, and its node reports the error.
        world->abort(error.what());
      }
    };
  };
  try {
    for (int rank = 1; rank < ranks; ++rank) threads_.emplace_back(follow(rank, group.rank(rank)));
  } catch (...) {
    end();  // those that were started
    throw;
  }
}

FollowerThreads::~FollowerThreads() {
  end();
}

void FollowerThreads::end() {
  leader_.reset();
  for (auto& thread : threads_) thread.join();
}

}  // namespace troupe::actors::group
