// Communicator: the interface of a group of ranks. Implementations: transports/mpi; OneRank, a
// group of one; ThreadGroup, threads of one process; Hostile, for tests. Its primitives only move
// bytes, except start_reduce_scatter(); other reductions are built on them (all_reduce.h). All sums
// are in the order of the ranks, so that threads and MPI give equal bits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "engine/parallel/pending.h"

namespace troupe::engine::parallel {

/// Lengths by rank, in bytes or values. Zeros are allowed.
using Counts = std::span<const std::size_t>;

/// One rank's view of its group. Every rank calls the same collectives in the same order, from one
/// thread at a time. `what` names the operation in errors ("gradients of step 7"). Collectives
/// throw Failure: Errc::timeout when another rank does not arrive in time, Errc::closed when the
/// group was aborted, with the message of the rank that aborted it.
///
/// Non-blocking operations (start_...) return at once; Pending::wait() throws as collectives do.
/// Their order counts as that of collectives. All ranks give an operation the same name; calls that
/// do not match (kind, name, lengths) are an error that names the operation.
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

  /// Sends bytes to rank `to`, which receives them with the same length and name. Messages between
  /// two ranks arrive in the order in which they were started. Waiting may take until the other
  /// rank has started to receive.
  virtual Pending start_send(std::span<const std::byte> data, int to, std::string_view what) = 0;
  virtual Pending start_receive(std::span<std::byte> data, int from, std::string_view what) = 0;
  /// Concatenates every rank's `mine` into `all`; counts[r] is the number of bytes of rank r, equal
  /// on all ranks. `mine` may be its own place in `all`.
  virtual Pending start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                   Counts counts, std::string_view what) = 0;
  /// Sends sent[r] bytes of `mine` to rank r and receives received[r] bytes from it, both in the
  /// order of the ranks. The spans do not overlap.
  virtual Pending start_all_to_all(std::span<const std::byte> mine, Counts sent,
                                   std::span<std::byte> theirs, Counts received,
                                   std::string_view what) = 0;
  /// part[i] = ((rank 0 + rank 1) + rank 2) + ... of the counts[rank()] values of this rank's part.
  /// `values` has the parts of all ranks in their order; `counts` is equal on all ranks. `part` may
  /// be its own place in `values`.
  virtual Pending start_reduce_scatter(std::span<const float> values, Counts counts,
                                       std::span<float> part, std::string_view what) = 0;

  /// start_send() and start_receive(), waited for.
  void send(std::span<const std::byte> data, int to, std::string_view what) {
    start_send(data, to, what).wait();
  }
  void receive(std::span<std::byte> data, int from, std::string_view what) {
    start_receive(data, from, what).wait();
  }

  /// Creates a group of the ranks with the same color (not negative), ordered by key. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  /// Aborts the group: every collective, pending or later, throws Errc::closed with this message.
  virtual void abort(std::string_view why) noexcept = 0;
};

}  // namespace troupe::engine::parallel
