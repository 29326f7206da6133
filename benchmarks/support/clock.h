// Timing, and comparison of a rate with a ceiling: in pairs, because the clocks of shared machines
// vary.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "benchmarks/support/disturbance.h"

namespace troupe::benchmarks {

/// Returns the seconds that `work` takes.
template <class Work>
double seconds(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the processor time of all threads of this process so far.
double processor_seconds();

/// Returns the median; requires at least one value.
double median(std::vector<double> values);

/// Rounds that measure a ceiling and, directly after it, the work. Disturbed rounds are not counted
/// if there are enough others. A single round is measured once, disturbed or not: counts of
/// instructions do not depend on disturbances.
class Pairs {
 public:
  explicit Pairs(int wanted) : wanted_(wanted) {}
  /// True until the requested number of rounds is undisturbed, or three times as many were
  /// measured.
  bool wants_more() const { return undisturbed_ < wanted_ && std::ssize(seconds_) < maximum(); }
  /// True after half of those rounds.
  bool halfway() const {
    return 2 * undisturbed_ >= wanted_ || 2 * std::ssize(seconds_) >= maximum();
  }
  void add(double ceiling, double seconds, bool disturbed);

  double time() const { return middle(seconds_); }
  double ceiling() const { return middle(ceilings_); }
  /// Returns the median over rounds of amount / seconds / ceiling, for an amount in the ceiling's
  /// unit times seconds.
  double ratio(double amount) const;
  /// Returns the median of the values of the counted rounds.
  double middle(const std::vector<double>& of_rounds) const;
  /// Describes the rounds: "median of 5 rounds, 2 that were disturbed not counted".
  std::string describe() const;

 private:
  /// True if only undisturbed rounds count: at least a third of the requested number, and at least
  /// two.
  bool enough() const { return undisturbed_ >= std::min(wanted_, std::max(2, wanted_ / 3)); }
  int maximum() const { return wanted_ == 1 ? 1 : 3 * wanted_; }

  int wanted_, undisturbed_ = 0;
  std::vector<double> seconds_, ceilings_;
  std::vector<bool> disturbed_;
};

/// Measures all rounds. `ceiling()` returns a rate, `work()` the seconds that it took. `between()`
/// is called once, halfway.
template <class Ceiling, class Work, class Between>
Pairs in_pairs(int rounds, Ceiling&& ceiling, Work&& work, Between&& between) {
  Pairs out(rounds);
  for (bool called = false; out.wants_more();) {
    const Disturbance since;
    const double rate = ceiling(), time = work();
    out.add(rate, time, since.any());
    if (!called && out.halfway()) {
      called = true;
      between();
    }
  }
  return out;
}
template <class Ceiling, class Work>
Pairs in_pairs(int rounds, Ceiling&& ceiling, Work&& work) {
  return in_pairs(rounds, ceiling, work, [] {});
}

}  // namespace troupe::benchmarks
