// ThreadGroup: the ranks of a group as threads of one process. To start an operation a rank posts
// pointers to its buffers. When all have, those that wait copy, also for ranks that do not wait
// yet; a rank returns when all copies are done. Waiting ranks block on a condition variable.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

struct ThreadGroupOptions {
  /// Maximum wait for the other ranks in one collective (except broadcast_idle).
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);
  /// Called by the rank that missed the deadline, with the reason, before it throws: a rank that
  /// hangs cannot be joined, so a program may end here.
  std::function<void(const std::string& why)> on_timeout{};
};

class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks, ThreadGroupOptions options = {});
  ~ThreadGroup();
  ThreadGroup(ThreadGroup&&) noexcept;

  /// Returns the communicator of `rank`, for one thread; callable once per rank. It may outlive the
  /// ThreadGroup. When a rank's last communicator (including those split from it) is destroyed, the
  /// rank has left: collectives that wait for it throw Errc::closed. A wait that exceeds its
  /// deadline aborts the group. abort() may be called from any thread and also aborts the groups
  /// split from this one. Calls that do not match (operation, root, lengths) are a Bug on every
  /// rank.
  std::unique_ptr<Communicator> rank(int rank);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe::engine::parallel
