// EventCounts: a number per rank of a host that other ranks advance and its rank waits for (Reed
// and Kanodia 1979, "Synchronization with eventcounts and sequencers").
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "transports/mpi/shared_segment.h"

namespace troupe::transports::mpi {

/// A rank that waits gives its core to others and is awake within microseconds after advance(),
/// also where there are more ranks than cores. Any thread may call any function.
class EventCounts {
 public:
  /// Collective over MPI_COMM_WORLD. Null on every rank when the ranks cannot share memory.
  static std::unique_ptr<EventCounts> create(const Session& session);

  /// How often this rank's count was advanced.
  std::uint32_t read() const;
  /// Returns when the count is not `seen`, after `timeout`, or earlier.
  void await(std::uint32_t seen, std::chrono::nanoseconds timeout) const;
  /// Advances the count of a rank of MPI_COMM_WORLD. What was written before is visible to it.
  void advance(int rank) const;

 private:
  /// In a line of the cache of its own; begins as zeros.
  struct alignas(64) Event {
    std::uint32_t count, waiting;
  };
  using Word = std::atomic_ref<std::uint32_t>;
  static_assert(Word::is_always_lock_free);  // then it works between processes

  EventCounts(std::unique_ptr<SharedSegment> segment, int rank);
  Event& event(int rank) const;

  std::unique_ptr<SharedSegment> segment_;
  int rank_;
};

}  // namespace troupe::transports::mpi
