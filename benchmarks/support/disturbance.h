// What else went on while something was timed. Machines are shared, and rounds in which a processor
// did something else say nothing of a program: torch_lm.py does not count its own, so neither do
// the programs here (benchmarks/README.md).
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::benchmarks {

class Disturbance {
 public:
  Disturbance();
  /// Whether, since it was made, threads of this process waited for a processor for more than 3 %
  /// of the time in all, or the host took a processor away. No: what the system does not tell.
  bool any() const;

 private:
  std::chrono::steady_clock::time_point begin_;
  double waited_;
  std::int64_t stolen_;
};

}  // namespace troupe::benchmarks
