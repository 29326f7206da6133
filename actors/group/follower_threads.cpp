#include "actors/group/follower_threads.h"

#include <exception>

namespace troupe::actors::group {

using engine::parallel::Communicator;

FollowerThreads::FollowerThreads(int ranks, engine::parallel::ThreadGroupOptions options,
                                 const std::function<void(Communicator& world)>& work) {
  engine::parallel::ThreadGroup group(ranks, options);
  leader_ = group.rank(0);
  for (int rank = 1; rank < ranks; ++rank)
    threads_.emplace_back([work, world = std::shared_ptr<Communicator>(group.rank(rank))] {
      try {
        work(*world);
      } catch (const std::exception& error) {
        // Ends the leader's actor, and its node reports the error.
        world->abort(error.what());
      }
    });
}

FollowerThreads::~FollowerThreads() {
  leader_.reset();
  for (auto& thread : threads_) thread.join();
}

}  // namespace troupe::actors::group
