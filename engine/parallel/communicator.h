// Communicator: the port through which the ranks of one group work together. Real: transports/mpi;
// trivial: OneRank; in one process: ThreadGroup; for tests: Hostile. Four primitives only move
// bytes; whatever reduces is written once on top of them (reduce.h), in the order of the ranks, so
// that threads and MPI give the same bits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace troupe::engine::parallel {

/// One rank's view of its group. Every rank calls the same collectives in the same order, from one
/// thread at a time. `what` names the wait in errors ("gradients of step 7"). They throw Failure:
/// Errc::timeout when the others do not come in time, Errc::closed when the group has ended, with
/// the words of the rank that ended it.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// The root's bytes to everybody; the same length everywhere.
  virtual void broadcast(std::span<std::byte> data, int root, std::string_view what) = 0;
  /// all[r * mine.size() ...] = what rank r gave. Equal lengths; all is size() times as long and
  /// does not overlap mine.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                          std::string_view what) = 0;
  /// Block r of `mine` goes to rank r; block r of `theirs` comes from it. Equal blocks; both spans
  /// are size() blocks long and do not overlap.
  virtual void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                          std::string_view what) = 0;
  /// A broadcast that may be long in coming: waits by napping (below 2 % of a core), until it comes
  /// or the group ends.
  virtual void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) = 0;

  /// A group of the ranks that give the same colour (not negative), ordered by key. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  /// A rank's exception ends its group: every rank that waits, now or later, gets Errc::closed with
  /// these words.
  virtual void abort(std::string_view why) noexcept = 0;
};

}  // namespace troupe::engine::parallel
