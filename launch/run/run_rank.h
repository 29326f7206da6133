// run_rank(): what a process of mpirun does as one rank of a group, and how the group ends when a
// rank fails.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "engine/base/errors/error.h"
#include "engine/base/files/environment_error.h"
#include "engine/parallel/communicator.h"

namespace troupe::launch::run {

/// Ends all ranks of `world`, which cannot continue without this one.
inline void abort_ranks(engine::parallel::Communicator& world, const std::exception& error) {
  const auto outside = environment_error(error);
  world.abort(outside ? outside->what : error.what());
}

/// Returns work(*rank) for the rank that make() returns, a pointer that owns it. An exception that
/// left the destructor of the group would end it like the death of a rank: a Failure, which all
/// ranks have, is thrown when the rank has left, and any other exception is passed to
/// rank->abort().
template <class Make, class Work>
int run_rank(Make make, Work work) {
  std::optional<Error> failed;
  int code = 0;
  {
    const auto rank = make();
    try {
      code = work(*rank);
    } catch (const Failure& failure) {
      failed = failure.error();
    } catch (const std::exception& error) {
      rank->abort(error);
    }
  }
  if (failed) throw Failure(std::move(*failed));
  return code;
}

}  // namespace troupe::launch::run
