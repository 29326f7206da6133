// Hostile: a Communicator that wraps another and injects delays, failures and stalls, by a seed and
// at the n-th call. For tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/error.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// Calls are counted from 0, over the communicator and those split from it; a split is a call.
struct HostileOptions {
  std::uint64_t seed = 0;
  int max_yields = 0;         ///< maximum number of thread yields before and after each call
  std::int64_t fail_at = -1;  ///< call that throws `failure`; -1: none
  Error failure{Errc::io, "injected failure"};
  std::int64_t stall_at = -1;  ///< call before which `stall` runs; -1: none
  std::function<void()> stall{};
};

std::unique_ptr<Communicator> make_hostile(std::unique_ptr<Communicator> group,
                                           HostileOptions options);

}  // namespace troupe::engine::parallel
