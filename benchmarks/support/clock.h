// Time, and how a rate is compared with a ceiling: in pairs, since machines are shared and their
// clocks move.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "benchmarks/support/disturbance.h"

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

/// Rounds of a ceiling and, straight after it, the work. Of rounds that were disturbed none counts
/// where there are enough others. A single round is made once, disturbed or not: who counts
/// instructions compares work that is the same each time.
class Pairs {
 public:
  explicit Pairs(int wanted) : wanted_(wanted) {}
  /// Until so many rounds are undisturbed, or there are three times as many.
  bool wants_more() const { return undisturbed_ < wanted_ && std::ssize(seconds_) < maximum(); }
  /// Whether half of that is there.
  bool halfway() const {
    return 2 * undisturbed_ >= wanted_ || 2 * std::ssize(seconds_) >= maximum();
  }
  void add(double ceiling, double seconds, bool disturbed);

  double time() const { return middle(seconds_); }
  double ceiling() const { return middle(ceilings_); }
  /// The median over rounds of amount / seconds / ceiling, for an amount in the ceiling's unit
  /// times seconds.
  double ratio(double amount) const;
  /// The median of what was found in each round, of those that count.
  double middle(const std::vector<double>& of_rounds) const;
  /// "median of 5 rounds, 2 that were disturbed not counted".
  std::string told() const;

 private:
  /// Whether undisturbed rounds alone count: a third of those that were wanted, two at least.
  bool enough() const { return undisturbed_ >= std::min(wanted_, std::max(2, wanted_ / 3)); }
  int maximum() const { return wanted_ == 1 ? 1 : 3 * wanted_; }

  int wanted_, undisturbed_ = 0;
  std::vector<double> seconds_, ceilings_;
  std::vector<bool> disturbed_;
};

/// `ceiling()` gives a rate, `work()` the seconds that it took. `between()` is called once,
/// halfway.
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
