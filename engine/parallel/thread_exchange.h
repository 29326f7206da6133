// One operation among the threads of a group: the arguments of its ranks, and the copies and sums
// that complete it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

enum class ExchangeKind { broadcast, all_gather, all_to_all, reduce_scatter, transfer, split };

/// A rank's arguments. Spans point into the rank's memory.
struct Post {
  ExchangeKind kind = ExchangeKind::broadcast;
  int root = 0;                            ///< of a broadcast
  std::span<const std::byte> bytes = {};   ///< what the rank sends
  std::span<std::byte> into = {};          ///< where it receives
  std::vector<std::size_t> counts = {};    ///< blocks of `bytes` by rank; of `into` for all_gather
  std::vector<std::size_t> received = {};  ///< blocks of `into` of an all_to_all
  std::string what = {};
  bool blocking = false;  ///< its name need not be equal on all ranks
};

/// An operation between `ranks`: all ranks of a group, or the sender and the receiver. The mutex of
/// the world guards it; only run_part() is called without.
///
/// The operation is complete when every part has run: part i writes what rank i receives. A rank
/// runs its own part when it waits. It also runs the parts of ranks that have started the operation
/// and do something else now, so a wait never depends on what those do next.
struct Exchange {
  enum class Part { open, running, done };

  explicit Exchange(std::vector<int> names);

  const std::vector<int> ranks;  ///< in the first group, for messages
  std::vector<Post> posts;
  std::vector<char> here, waits;  ///< which ranks have started it, and which wait for it
  std::vector<Part> parts;
  std::size_t arrived = 0, running = 0, finished = 0;
  bool dropped = false;  ///< a rank's buffers are gone: no other part runs
  /// Of a split: each rank's group and rank there, as shared_ptr<ThreadRanks>.
  std::vector<std::pair<std::shared_ptr<void>, int>> children = {};

  bool all_here() const { return arrived == posts.size(); }
  bool complete() const { return finished == posts.size(); }
  void arrive(std::size_t index, Post post);
  /// The next part that rank `index` has to run: its own, or one of a rank that does not wait; -1:
  /// none.
  int next_part(std::size_t index) const;
  void run_part(std::size_t index);
  /// How the arguments of the ranks contradict each other; "" if they match.
  std::string contradiction() const;
  /// "rank 1 calls broadcast of 8 bytes with root 0 ('a name')"
  std::string describe(std::size_t index) const;
};

/// "broadcast", "all_gather", ...
const char* to_string(ExchangeKind kind);

}  // namespace troupe::engine::parallel
