#include "transports/mpi/event_counts.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <utility>

namespace troupe::transports::mpi {

std::unique_ptr<EventCounts> EventCounts::create(const Session& session) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto segment = SharedSegment::create(session, MPI_COMM_WORLD,
                                       static_cast<std::size_t>(size) * sizeof(Event));
  if (!segment) return nullptr;
  return std::unique_ptr<EventCounts>(new EventCounts(std::move(segment), rank));
}

EventCounts::EventCounts(std::unique_ptr<SharedSegment> segment, int rank)
    : segment_(std::move(segment)), rank_(rank) {
}

EventCounts::Event& EventCounts::event(int rank) const {
  return reinterpret_cast<Event*>(segment_->bytes().data())[rank];
}

std::uint32_t EventCounts::read() const {
  return Word(event(rank_).count).load();
}

// Either advance() sees that a thread waits, or the kernel sees another count and does not wait:
// both first write their own word and then read the other's, in one order of all ranks.
void EventCounts::await(std::uint32_t seen, std::chrono::nanoseconds timeout) const {
  Event& own = event(rank_);
  const timespec longest{.tv_sec = timeout.count() / 1'000'000'000,
                         .tv_nsec = timeout.count() % 1'000'000'000};
  Word(own.waiting).fetch_add(1);
  syscall(SYS_futex, &own.count, FUTEX_WAIT, seen, &longest, nullptr, 0);
  Word(own.waiting).fetch_sub(1);
}

void EventCounts::advance(int rank) const {
  Event& theirs = event(rank);
  Word(theirs.count).fetch_add(1);
  if (Word(theirs.waiting).load() > 0)
    syscall(SYS_futex, &theirs.count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace troupe::transports::mpi
