// Time, and how a rate is held against a ceiling: in pairs, since machines are shared and their clocks move.
#pragma once

#include <chrono>
#include <vector>

namespace troupe::benchmarks {

/// Seconds that `work` takes.
template <class Work>
double seconds(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The middle one, or the mean of the middle two; not of none.
double median(std::vector<double> values);

/// Rounds of a ceiling and, straight after it, the work.
struct Pairs {
  std::vector<double> seconds, ceilings;

  double time() const { return median(seconds); }
  double ceiling() const { return median(ceilings); }
  /// The median over rounds of amount / seconds / ceiling, for an amount in the ceiling's unit times seconds.
  double ratio(double amount) const;
};

/// `ceiling()` gives a rate, `work()` the seconds that it took.
template <class Ceiling, class Work>
Pairs in_pairs(int rounds, Ceiling&& ceiling, Work&& work) {
  Pairs out;
  for (int round = 0; round < rounds; ++round) {
    out.ceilings.push_back(ceiling());
    out.seconds.push_back(work());
  }
  return out;
}

}  // namespace troupe::benchmarks
