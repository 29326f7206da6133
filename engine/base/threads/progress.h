// Progress of the threads of this process: how many pieces of work each has finished, in which
// operation it is, and what it waits for. hang_watch.h finds the threads that hang from it.
//
// A piece is a fraction of a layer: a tile of a matrix product, a block of attention, a tensor that
// is read or written. Counting one costs three instructions and no shared cache line.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::progress {

/// Counters of a thread, which only this thread writes.
struct alignas(64) Counters {
  std::atomic<std::uint64_t> pieces{0};
  std::atomic<std::uint32_t> in_item{0};        ///< an item of a loop, on a thread of a ThreadPool
  std::atomic<const void*> waits_for{nullptr};  ///< the pool whose threads it waits for
};
inline constinit thread_local Counters counters{};

/// Counts a finished piece of work of the calling thread.
inline void advance() {
  auto& pieces = counters.pieces;
  pieces.store(pieces.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// Jobs that others gave to a thread. It has work while the two differ.
struct Jobs {
  std::atomic<std::uint64_t> posted{0}, finished{0};
};

/// Names the calling thread during its lifetime, also for the kernel (15 bytes). `jobs`, which
/// outlives this, may be null. `pool`: the thread executes the items of this ThreadPool.
class ThreadScope {
 public:
  explicit ThreadScope(std::string name, const Jobs* jobs = nullptr, const void* pool = nullptr);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
};

/// The calling thread works on `name` during the lifetime: it has to advance. Operations may be
/// nested. A thread without a ThreadScope is called "main".
class Operation {
 public:
  explicit Operation(std::string name);
  ~Operation();
  Operation(const Operation&) = delete;
};

/// The calling thread waits for something that has a deadline of its own or is watched itself: it
/// need not advance during the lifetime.
class Wait {
 public:
  Wait();
  ~Wait();
  Wait(const Wait&) = delete;
};

/// What Wait does, for callers that cannot use it.
void begin_wait();
void end_wait();

/// A thread as it was at a moment.
struct ThreadLook {
  std::uint64_t id = 0;  ///< never used again
  std::string name;
  pid_t thread = 0;
  std::string operation;            ///< all of them: "policy: 'train_step'"; "" outside of any
  std::uint64_t finished = 0;       ///< pieces and jobs
  bool works = false;               ///< it has to advance
  const void* pool = nullptr;       ///< it executes items of this pool
  const void* waits_for = nullptr;  ///< it waits for the threads of this pool
};
/// All threads with a ThreadScope or an Operation.
std::vector<ThreadLook> look_at_threads();
/// Pieces that the threads of this process, including those that have ended, have finished.
std::uint64_t total_pieces();

/// Every report of a hang contains the first, and every report that it is over the second: launch
/// finds them in the output of its groups.
inline constexpr std::string_view hang_words = " made no progress for ",
                                  advances_words = " advances again";

/// Hangs that are known at present, by what was found: this process's, its ranks', and those that a
/// group of processes reported. Each is a sentence without a full stop.
void add_hang(std::string_view of, std::string_view what);
/// False if there was none.
bool remove_hang(std::string_view of);
/// All of them, joined by "; ", or "".
std::string hangs();

}  // namespace troupe::progress
