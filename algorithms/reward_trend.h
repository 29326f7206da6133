// RewardTrend: whether the training reward rises, has stopped to rise, or fell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::algorithms {

class RewardTrend {
 public:
  /// A reward that is not finite is left out.
  void add(double reward);
  /// Whether it neither rises nor stays near its best after it has risen.
  bool stopped() const;

  /// Means of the first and of the last steps, up to ten and at most half of all; NaN before the
  /// fourth step.
  struct Change {
    double start, now;
    double last;   ///< mean of the last three steps at most
    double error;  ///< standard error of one step, from the differences of neighbors
  };
  Change change() const;
  /// Whether the last steps are above the first ones, or above the very first one, which no update
  /// has changed, by more than noise and a twentieth.
  bool rose() const;
  /// Whether there are steps enough to tell a trend from noise.
  bool is_known() const { return count_ >= 10; }
  /// Whether the last three are below them by more than noise and a half.
  bool fell() const;

 private:
  /// Steps of a mean; below 2: too few.
  std::size_t window() const;
  std::vector<double> first_, recent_;
  double best_ = 0;     ///< mean of ten steps
  double squares_ = 0;  ///< moving mean of the squared change from step to step
  std::int64_t count_ = 0, best_at_ = 0;
};

}  // namespace troupe::algorithms
