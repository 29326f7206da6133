// Hardware counters of this process, from perf_event_open.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::launch::profile {

struct Counts {
  std::int64_t instructions = 0, cycles = 0, cache_misses = 0;
  Counts operator-(const Counts& before) const {
    return {instructions - before.instructions, cycles - before.cycles,
            cache_misses - before.cache_misses};
  }
  Counts& operator+=(const Counts& more) {
    instructions += more.instructions;
    cycles += more.cycles;
    cache_misses += more.cache_misses;
    return *this;
  }
};

class Counters {
 public:
  /// Counts all present threads of the process, in user space. Errc::unsupported if the kernel or
  /// the machine does not allow it.
  static Result<std::unique_ptr<Counters>> open();
  ~Counters();
  Counters(const Counters&) = delete;

  /// Counts since open(), summed over all threads.
  Counts read() const;

 private:
  Counters() = default;
  Result<> add(int thread);
  std::vector<int> groups_, files_;  ///< per thread: the group's leader; all files
};

}  // namespace troupe::launch::profile
