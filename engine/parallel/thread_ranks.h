// ThreadRanks: one group of threads, and the world of a group and all groups split from it. Shared
// by the communicators of thread_group.cpp.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/parallel/thread_exchange.h"

namespace troupe::engine::parallel {

struct ThreadRanks;

/// State shared by a group and all groups split from it.
struct ThreadWorld {
  std::mutex mutex;
  std::chrono::nanoseconds deadline{};
  std::function<void(const std::string& why)> on_timeout{};
  std::vector<std::weak_ptr<ThreadRanks>> groups{};
  std::vector<int> held{};   // number of communicators that each rank holds
  std::vector<bool> left{};  // ranks that have destroyed all their communicators

  void take(int name);
  void drop(int name);
  void end(const std::string& message, bool bug);
};

/// How long a rank waits in one operation.
struct WaitLimit {
  std::optional<std::chrono::nanoseconds> deadline{};  ///< absent: that of the world
  bool idle = false;                                   ///< no deadline
};

/// One group. world->mutex guards everything but `world` and `names`.
struct ThreadRanks {
  ThreadRanks(std::shared_ptr<ThreadWorld> of, std::vector<int> ranks);

  using Started = std::shared_ptr<Exchange>;

  const std::shared_ptr<ThreadWorld> world;
  const std::vector<int> names;  // ranks in the first group, for messages
  std::condition_variable changed{};
  std::optional<std::string> ended{};  // why the group was aborted
  bool bug = false;                    // it was aborted by a Bug

  int size() const { return static_cast<int>(names.size()); }
  /// Adds rank `rank` to the next operation of the group. Does not wait.
  Started start(int rank, Post post);
  /// Adds the sender (index 0) or the receiver (1) to the next transfer between two ranks.
  Started start_transfer(int from, int to, int index, Post post);
  /// Waits until the operation is complete.
  void finish(Exchange& exchange, std::size_t index, WaitLimit limit);
  /// Aborts the group; returns when no other rank uses the buffers of this one.
  void abandon(Exchange& exchange, const std::string& why);

 private:
  void throw_if_ended(std::string_view what) const;
  void add(Exchange& exchange, std::size_t index, Post post);
  void wait_for_all(std::unique_lock<std::mutex>& lock, Exchange& exchange, std::size_t index,
                    WaitLimit limit);
  bool wait_and_watch(std::unique_lock<std::mutex>& lock, const Exchange& exchange,
                      std::size_t index, std::chrono::nanoseconds deadline,
                      const std::function<bool()>& decided,
                      const std::function<std::string()>& ranks);
  [[noreturn]] void time_out(std::unique_lock<std::mutex>& lock, const Exchange& exchange,
                             std::size_t index, std::chrono::nanoseconds deadline);
  void wait_for_copies(std::unique_lock<std::mutex>& lock, const Exchange& exchange,
                       std::size_t index, WaitLimit limit);
  bool any_rank_left(const Exchange& exchange) const;
  std::string copying(const Exchange& exchange) const;
  std::string missing(const Exchange& exchange, bool only_left) const;
  void make_children(Exchange& exchange);

  // Operations that some rank has not started yet: front() is number `first_`.
  std::deque<Started> open_;
  std::uint64_t first_ = 0;
  std::vector<std::uint64_t> next_;  // number of the next operation of each rank
  std::map<std::pair<int, int>, std::deque<Started>> transfers_;  // by sender and receiver
};

}  // namespace troupe::engine::parallel
