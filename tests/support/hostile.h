// Hostile: a Communicator that wraps another and injects faults, by a seed and at the n-th call:
// delays, failures, stalls, lost and exchanged operations, wrong lengths. For tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/errors/error.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// Calls are counted from 0, over the communicator and those split from it; a split is a call, a
/// wait is none. The last three faults concern only calls of non-blocking operations.
struct HostileOptions {
  std::uint64_t seed = 0;
  int max_yields = 0;         ///< maximum number of thread yields before and after each call
  std::int64_t fail_at = -1;  ///< call that throws `failure`; -1: none
  Error failure{Errc::io, "injected failure"};
  std::int64_t stall_at = -1;  ///< call before which `stall` runs; -1: none
  std::function<void()> stall{};
  std::int64_t lose_at = -1;  ///< call that the other ranks never see; its wait does not complete
  /// Call that starts only after the next one; -1: none.
  std::int64_t swap_at = -1;
  std::int64_t shorten_at = -1;  ///< call that sends one byte (or value) less than it should
};

std::unique_ptr<Communicator> make_hostile(std::unique_ptr<Communicator> group,
                                           HostileOptions options);

}  // namespace troupe::engine::parallel
