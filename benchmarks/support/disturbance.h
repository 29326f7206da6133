// Detection of other activity during a measurement. Rounds in which other programs used the
// processors of a shared machine are not representative; torch_lm.py excludes them as well
// (benchmarks/README.md).
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::benchmarks {

class Disturbance {
 public:
  Disturbance();
  /// True if, since construction, threads of this process waited for a processor for more than 3 %
  /// of the time, or the hypervisor took a processor away. False if the system does not report it.
  bool any() const;

 private:
  std::chrono::steady_clock::time_point begin_;
  double waited_;
  std::int64_t stolen_;
};

}  // namespace troupe::benchmarks
