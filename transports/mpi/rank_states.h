// RankStates: what each rank of a host publishes about itself: its process, its progress, and for
// which rank it waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transports/mpi/shared_segment.h"

namespace troupe::transports::mpi {

class RankStates {
 public:
  /// Collective over MPI_COMM_WORLD. Null on every rank when the ranks cannot share memory.
  /// `progress`, which a thread publishes four times a second: a number that changes when this rank
  /// advances.
  static std::unique_ptr<RankStates> create(const Session& session,
                                            std::function<std::uint64_t()> progress);
  ~RankStates();

  /// This rank waits for `rank`, or for several; no_rank: it no longer waits.
  static constexpr int no_rank = -1, several = -2;
  void wait_for(int rank);
  /// Of the ranks that this one waits for, those that others wait for in their turn: where a rank
  /// waits itself, the one that it waits for takes its place. Empty: every rank, of which those are
  /// returned that do not wait.
  std::vector<int> behind(const std::vector<int>& missing) const;
  /// A number that changes when one of the ranks advances, or while the process of one runs.
  std::uint64_t progress_of(const std::vector<int>& ranks) const;
  std::uint64_t beats_of(const std::vector<int>& ranks) const;
  /// "rank 2 (process 4711, stopped by SIGSTOP)", "ranks 1, 2".
  std::string describe(const std::vector<int>& ranks) const;

 private:
  /// In a line of the cache of its own; begins as zeros.
  struct alignas(64) State {
    std::uint64_t progress;
    std::uint32_t waits;  ///< 0: for no rank; 1: for several; 2 + rank
    std::uint32_t process;
    std::uint64_t beats;  ///< how often its thread has published
  };
  using Word = std::atomic_ref<std::uint32_t>;
  using Number = std::atomic_ref<std::uint64_t>;
  static_assert(Word::is_always_lock_free && Number::is_always_lock_free);

  RankStates(std::unique_ptr<SharedSegment> segment, int rank, int size,
             std::function<std::uint64_t()> progress);
  State& state(int rank) const;
  void publish();

  std::unique_ptr<SharedSegment> segment_;
  int rank_, size_;
  std::function<std::uint64_t()> progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe::transports::mpi
