// Hostile: a Communicator between the group and its user that is slow, fails or stalls, by a seed
// and at the n-th call. For tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/error.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// Calls are counted from 0, over the communicator and all that are split off from it (a split is a
/// call, too).
struct HostileOptions {
  std::uint64_t seed = 0;
  int longest_pause = 0;  ///< before and after each call the thread gives way 0 .. this many times
  std::int64_t fail_at = -1;  ///< this call throws `failure` instead of coming; -1: none
  Error failure{Errc::io, "a made-up failure"};
  std::int64_t stall_at = -1;  ///< before this call `stall` runs, as long as it likes; -1: none
  std::function<void()> stall{};
};

std::unique_ptr<Communicator> make_hostile(std::unique_ptr<Communicator> group,
                                           HostileOptions options);

}  // namespace troupe::engine::parallel
