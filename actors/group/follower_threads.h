// FollowerThreads: the threads of ranks 1 to n-1 of a group within one process.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "engine/parallel/thread_group.h"

namespace troupe::actors::group {

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
  std::unique_ptr<engine::parallel::Communicator> leader_;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::actors::group
