// RankWatch: ends the group when the process of another rank on this host has ended, whatever this
// rank waits for.
#pragma once

#include <atomic>
#include <thread>

#include "actors/runtime/process_events.h"
#include "engine/parallel/communicator.h"

namespace troupe::launch::serve::ranks {

class RankWatch {
 public:
  /// Collective; rank 0 watches the others. mpirun watches the ranks of other hosts. `world`
  /// outlives this.
  explicit RankWatch(engine::parallel::Communicator& world);
  /// Ends the watch. The other ranks may end from now on.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;

 private:
  actors::ProcessEvents events_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe::launch::serve::ranks
