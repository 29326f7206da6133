// Communicator: the interface of a group of ranks. Implementations: transports/mpi; OneRank, a
// group of one; ThreadGroup, threads of one process; Hostile, for tests. Its primitives only move
// bytes; reductions are built on them (all_reduce.h), in the order of the ranks, so that threads
// and MPI give equal bits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace troupe::engine::parallel {

/// One rank's view of its group. Every rank calls the same collectives in the same order, from one
/// thread at a time. `what` names the operation in errors ("gradients of step 7"). Collectives
/// throw Failure: Errc::timeout when another rank does not arrive in time, Errc::closed when the
/// group was aborted, with the message of the rank that aborted it.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Copies the root's bytes to every rank. Equal lengths.
  virtual void broadcast(std::span<std::byte> data, int root, std::string_view what) = 0;
  /// Concatenates every rank's `mine` into `all`, in the order of the ranks. Equal lengths; `all`
  /// is size() times as long and does not overlap `mine`.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                          std::string_view what) = 0;
  /// Sends block r of `mine` to rank r and receives block r of `theirs` from it. Equal blocks; both
  /// spans are size() blocks long and do not overlap.
  virtual void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                          std::string_view what) = 0;
  /// A broadcast without a timeout: waits with little CPU (below 2 % of a core) until the root
  /// sends or the group is aborted.
  virtual void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) = 0;

  /// Creates a group of the ranks with the same color (not negative), ordered by key. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  /// Aborts the group: every collective, pending or later, throws Errc::closed with this message.
  virtual void abort(std::string_view why) noexcept = 0;
};

}  // namespace troupe::engine::parallel
