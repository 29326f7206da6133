// Watch: looks at the metrics of a run and says in words when they show a failure that is known.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/journal.h"

namespace troupe::algorithms {

/// A sign of trouble: a metric out of its bounds for some steps in a row.
struct Sign {
  std::string_view metric;
  enum class Bound { at_least, at_most, below_start } bound;
  double limit;        ///< below_start: a share of the greatest value seen in the run's first steps
  std::int64_t steps;  ///< in a row
  std::string_view meaning;  ///< what it is and what to do
};
/// Those of reinforcement learning: entropy that collapses, a KL divergence that runs away, groups
/// without differences, updates that are mostly clipped, answers that are all cut, gradients that
/// are 0, rewards that fail.
const std::vector<Sign>& signs_of_trouble();

class Watch {
 public:
  explicit Watch(const std::vector<Sign>& signs = signs_of_trouble()) : signs_(&signs) {}
  /// The warnings that this step gives rise to; each also goes to the log. One is given once, and
  /// again only after it has gone away.
  std::vector<std::string> look(std::int64_t step, const Metrics& metrics);

 private:
  struct State {
    std::int64_t seen = 0, in_a_row = 0;
    double start = 0;  ///< the greatest value of the first steps
  };
  bool shows(const Sign& sign, double value, State& state) const;

  const std::vector<Sign>* signs_;
  std::map<const Sign*, State> states_;
};

}  // namespace troupe::algorithms
