// HangDetector: finds threads that work without progress, from readings of all threads of a
// process.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/threads/progress.h"

namespace troupe::progress {

/// Time without progress. It grows by at most two seconds from look to look: while this process
/// itself was stopped, no thread could advance.
class Stillness {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `progress`: anything that changes when there is progress.
  std::chrono::milliseconds look(std::uint64_t progress, Time now);
  std::chrono::milliseconds length() const { return length_; }

 private:
  bool first_ = true;
  std::uint64_t progress_ = 0;
  Time last_{};
  std::chrono::milliseconds length_{0};
};

struct Hang {
  std::string name;       ///< "process/rollout", "engine thread 1 of process/rollout"
  pid_t thread = 0;       ///< its number for the kernel
  std::string operation;  ///< "'generate'"; "" outside of operations
  bool waits = false;     ///< it waits for threads of its pool, none of which works
  std::chrono::milliseconds length{0};
};
/// "process/rollout (thread 4711, stopped by SIGSTOP) has made no progress for 20 s in 'generate'".
std::string describe(const Hang& hang);
/// What `hang` is of, for add_hang().
std::string key_of(const Hang& hang);

class HangDetector {
 public:
  /// A thread that works hangs after this time without progress.
  explicit HangDetector(std::chrono::milliseconds limit) : limit_(limit) {}

  struct Found {
    std::vector<Hang> began;  ///< since the last look
    std::vector<Hang> ended;  ///< these advance again, or have ended
    /// The longest time without progress of a thread that works, without threads of pools: the
    /// others of a pool do the work of one that has not begun an item.
    std::chrono::milliseconds longest{0};
    std::vector<Hang> present;  ///< all, longest first
  };
  Found look(std::span<const ThreadLook> threads, Stillness::Time now);

 private:
  struct Watched {
    Stillness stillness{};
    bool reported = false;
    Hang hang{};
  };
  std::chrono::milliseconds limit_;
  std::map<std::uint64_t, Watched> watched_;
};

/// "stopped by SIGSTOP", "stopped by a debugger" or "waiting for the kernel", from
/// /proc/PROCESS/task/THREAD/stat; "" for any other state. `thread` 0: the process's first.
std::string state_of_thread(pid_t process, pid_t thread = 0);

}  // namespace troupe::progress
