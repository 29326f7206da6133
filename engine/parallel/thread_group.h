// ThreadGroup: the ranks of a group as threads of one process. A collective is a meeting: every
// rank posts where its bytes are, the last to come opens the copying, and nobody leaves before all
// have copied. Waiting ranks sleep on a condition variable.
#pragma once

#include <chrono>
#include <memory>

#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

struct ThreadGroupOptions {
  /// The longest wait for the others in one collective (not of broadcast_idle, which only the end
  /// of the group ends).
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);
};

class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks, ThreadGroupOptions options = {});
  ~ThreadGroup();
  ThreadGroup(ThreadGroup&&) noexcept;

  /// The communicator of rank `rank`, to be used by one thread; once each. It may outlive the
  /// ThreadGroup. A rank whose last communicator (this one, or one split off) is destroyed has
  /// left: who waits for it gets Errc::closed at once. A wait that passes its deadline ends the
  /// group. abort() may be called from any thread and reaches the groups that were split off, too.
  /// Calls that do not match (kind, root, lengths) are a Bug on every rank.
  std::unique_ptr<Communicator> rank(int rank);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe::engine::parallel
