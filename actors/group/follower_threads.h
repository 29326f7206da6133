// FollowerThreads: the threads of ranks 1 .. n-1 of a group that lives in one process.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "engine/parallel/thread_group.h"

namespace troupe::actors::group {

class FollowerThreads {
 public:
  /// Runs `work` on a thread for each rank but 0. An exception that leaves it ends the group with
  /// its words.
  FollowerThreads(int ranks, engine::parallel::ThreadGroupOptions options,
                  const std::function<void(engine::parallel::Communicator& world)>& work);
  /// Joins. Their work must be at its end, or about to hear that it is; a leader that dies on the
  /// way here ends the group by leaving it.
  ~FollowerThreads();
  FollowerThreads(const FollowerThreads&) = delete;

  /// Rank 0's communicator.
  engine::parallel::Communicator& leader() { return *leader_; }

 private:
  std::unique_ptr<engine::parallel::Communicator> leader_;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::actors::group
