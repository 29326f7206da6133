// Hardware counters of this process: perf_event_open, which is fenced in counters.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/error.h"

namespace troupe::launch {

struct Counts {
  std::int64_t instructions = 0, cycles = 0, cache_misses = 0;
  Counts operator-(const Counts& before) const {
    return {instructions - before.instructions, cycles - before.cycles,
            cache_misses - before.cache_misses};
  }
  Counts& operator+=(const Counts& more) {
    return instructions += more.instructions, cycles += more.cycles,
           cache_misses += more.cache_misses, *this;
  }
};

class Counters {
 public:
  /// Of all threads that the process has now, in user space. Errc::unsupported where the kernel or
  /// the machine does not allow it.
  static Result<std::unique_ptr<Counters>> open();
  ~Counters();
  Counters(const Counters&) = delete;

  /// Since open(), of all threads together.
  Counts read() const;

 private:
  Counters() = default;
  Result<> add(int thread);
  std::vector<int> groups_, files_;  ///< of each thread: the file that reads all three; every file
};

}  // namespace troupe::launch
