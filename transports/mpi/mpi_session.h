// Session: the lifetime of MPI in this process, and waiting for its requests.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/hangs/rank_wait.h"
#include "transports/mpi/mpi_world.h"
#include "transports/mpi/segment_folder.h"

namespace troupe::transports::mpi {

class EventCounts;
class RankStates;

/// Messages that move only when a rank works on them.
class Progress {
 public:
  virtual ~Progress() = default;
  /// Moves what can be moved now; whether anything was.
  virtual bool progress() = 0;
};

/// What a rank waits for.
struct Waiting {
  std::size_t bytes = 0;                               ///< of the messages
  std::string_view what;                               ///< name of the operation
  std::optional<std::chrono::nanoseconds> deadline{};  ///< absent: that of the options
  /// No deadline while the other process runs, and little CPU, until something has moved.
  bool idle = false;
  /// The ranks of MPI_COMM_WORLD whose part is missing, under lock(); absent: some of all.
  std::function<std::vector<int>()> missing{};
};

/// Shared by all communicators of the process; the last one finalizes MPI. Once they are created,
/// different threads may use different communicators at the same time: calls of MPI and work on
/// messages are made under lock() (MPI_THREAD_SERIALIZED).
class Session {
 public:
  static Result<std::shared_ptr<Session>> start(MpiOptions options);
  /// Waits for all ranks. Aborts the group instead during stack unwinding.
  ~Session();

  int rank() const { return rank_; }
  /// Not held while waiting.
  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
  /// Calls work(begin, length) for each block of `bytes` bytes, and once for 0 bytes.
  template <class Work>
  void in_blocks(std::size_t bytes, const Work& work) const {
    for (std::size_t begin = 0; begin == 0 || begin < bytes; begin += options_.max_block_bytes)
      work(begin, std::min(bytes - begin, options_.max_block_bytes));
  }
  /// Adds and removes messages on which every wait works. They stay valid in between.
  void add(Progress& messages) {
    const auto locked = lock();
    messages_.push_back(&messages);
  }
  void remove(Progress& messages) {
    const auto locked = lock();
    std::erase(messages_, &messages);
  }
  /// Whether messages between ranks of one host go through memory that they share.
  bool shares_memory() const;
  /// What the ranks of this host wait for, from now on; nullptr, and initially: nothing.
  void use(std::unique_ptr<EventCounts> events);
  /// Where the ranks of this host publish their progress, from now on.
  void use(std::unique_ptr<RankStates> states);
  const MpiOptions& options() const { return options_; }
  /// How many times messages of this rank were moved.
  std::uint64_t moves() const { return moves_.load(std::memory_order_relaxed); }
  /// Another rank of MPI_COMM_WORLD, which is on this host, has something to move.
  void notify(int rank) const;

  /// Calls `done` until it returns true, under lock(). Spins first, and again when something moves,
  /// because a rank makes progress only here. Then waits for notify() of another rank, for
  /// increasing intervals of 50 us to 2 ms: messages of MPI do not notify.
  template <class Done>
  void wait_until(const Done& done, const Waiting& waiting) const;
  /// Waits for a request that moves `bytes` bytes at this rank.
  void wait(MPI_Request request, std::size_t bytes, std::string_view what) const;
  /// Waits for several requests. Returns their statuses.
  std::vector<MPI_Status> wait_all(std::vector<MPI_Request>& requests,
                                   const Waiting& waiting) const;
  /// Aborts the group when an MPI call failed.
  void check_success(int code, std::string_view what) const;
  /// Reports the reason and aborts all processes of the group, with the exit code of `kind`.
  [[noreturn]] void abort(std::string_view why, Errc kind = Errc::closed) const noexcept;

 private:
  Session(MpiOptions options, std::optional<SegmentFolder> segments);
  /// Waits until all ranks have mapped the shared memory of MPI, and removes its names.
  void remove_segment_names();
  struct Step {
    bool moved, done;
  };
  template <class Done>
  Step step(const Done& done) const {
    const auto locked = lock();
    const bool moved = progress();
    return {moved, done()};
  }
  bool progress() const;
  std::chrono::nanoseconds deadline_of(const Waiting& waiting) const;
  std::vector<int> missing_in(const Waiting& waiting) const;
  /// Those that this rank waits for, or that they wait for themselves; how they are called.
  std::vector<int> hindering(const Waiting& waiting) const;
  std::string describe(const std::vector<int>& ranks) const;
  /// Called once a second in a wait. An idle one may last, but only while the processes of the
  /// others run.
  void watch(progress::RankWait& wait, const Waiting& waiting, bool idle) const;
  void end_watch() const;
  [[noreturn]] void time_out(const Waiting& waiting, std::chrono::nanoseconds waited) const;
  /// The count of EventCounts, or 0.
  std::uint32_t events() const;
  /// How a rank waits between two looks, by the time for which nothing has moved.
  void pause(std::chrono::nanoseconds since, bool idle, std::uint32_t events) const;

  MpiOptions options_;
  mutable std::optional<SegmentFolder> segments_;  // abort() is const and removes it
  std::unique_ptr<EventCounts> events_;
  std::unique_ptr<RankStates> states_;
  mutable std::mutex mutex_;
  mutable std::atomic<std::uint64_t> moves_{0};
  std::vector<Progress*> messages_;
  int rank_ = 0;
  int exceptions_;  // uncaught when this was created
};

template <class Done>
void Session::wait_until(const Done& done, const Waiting& waiting) const {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now(), moved = begin;
  bool idle = waiting.idle;
  progress::RankWait watched(options_.reports, options_.warn_after, rank_, waiting.what, begin);
  for (bool watches = false;;) {
    const std::uint32_t seen = events();
    const Step next = step(done);
    if (next.done) {
      if (watches) end_watch();
      return;
    }
    const auto now = Clock::now();
    if (next.moved) {
      moved = now;
      if (std::exchange(idle, false)) begin = now;
      continue;
    }
    if (!idle && now - begin > deadline_of(waiting)) time_out(waiting, now - begin);
    if (watched.due(now)) {
      watches = true;
      watch(watched, waiting, idle);
    }
    pause(now - moved, idle, seen);
  }
}

}  // namespace troupe::transports::mpi
