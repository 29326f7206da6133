#include "transports/mpi/rank_states.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/base/hangs/hang_detector.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::transports::mpi {

std::unique_ptr<RankStates> RankStates::create(const Session& session,
                                               std::function<std::uint64_t()> progress) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto segment = SharedSegment::create(session, MPI_COMM_WORLD,
                                       static_cast<std::size_t>(size) * sizeof(State));
  if (!segment) return nullptr;
  return std::unique_ptr<RankStates>(
      new RankStates(std::move(segment), rank, size, std::move(progress)));
}

RankStates::RankStates(std::unique_ptr<SharedSegment> segment, int rank, int size,
                       std::function<std::uint64_t()> progress)
    : segment_(std::move(segment)), rank_(rank), size_(size), progress_(std::move(progress)) {
  Word(state(rank_).process).store(static_cast<std::uint32_t>(::getpid()));
  thread_ = thread_with_blocked_signals("rank state", [this] { publish(); });
}

RankStates::~RankStates() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

RankStates::State& RankStates::state(int rank) const {
  return reinterpret_cast<State*>(segment_->bytes().data())[rank];
}

void RankStates::publish() {
  constexpr std::chrono::milliseconds interval{250};
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, [this] { return stopping_; })) {
    Number(state(rank_).progress).store(progress_());
    Number(state(rank_).beats).fetch_add(1);
  }
}

void RankStates::wait_for(int rank) {
  const std::uint32_t value = rank == no_rank   ? 0
                              : rank == several ? 1
                                                : static_cast<std::uint32_t>(rank) + 2;
  Word(state(rank_).waits).store(value);
}

std::vector<int> RankStates::behind(const std::vector<int>& missing) const {
  const auto waits = [this](int rank) { return Word(state(rank).waits).load(); };
  std::vector<int> found;
  const auto add = [&](int rank) {
    if (rank != rank_ && std::ranges::count(found, rank) == 0) found.push_back(rank);
  };
  if (missing.empty())
    for (int rank = 0; rank < size_; ++rank)
      if (waits(rank) == 0) add(rank);
  for (const int first : missing) {
    int rank = first;
    for (int steps = 0; steps < size_ && waits(rank) >= 2; ++steps)
      rank = static_cast<int>(waits(rank) - 2);
    add(rank == rank_ ? first : rank);  // ranks that wait for each other: the next one
  }
  std::ranges::sort(found);
  return found;
}

std::uint64_t RankStates::progress_of(const std::vector<int>& ranks) const {
  std::uint64_t sum = 0;
  for (const int rank : ranks)
    sum = sum * 31 + static_cast<std::uint64_t>(rank + 1) + Number(state(rank).progress).load();
  return sum;
}

std::uint64_t RankStates::beats_of(const std::vector<int>& ranks) const {
  std::uint64_t sum = 0;
  for (const int rank : ranks) sum += Number(state(rank).beats).load();
  return sum;
}

std::string RankStates::describe(const std::vector<int>& ranks) const {
  if (ranks.size() == 1) {
    const auto process = static_cast<pid_t>(Word(state(ranks[0]).process).load());
    const std::string found = progress::state_of_thread(process);
    return cat("rank ", ranks[0], " (process ", process, found.empty() ? "" : ", ", found, ")");
  }
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return names.empty() ? "the other ranks" : cat("ranks ", join(names, ", "));
}

}  // namespace troupe::transports::mpi
