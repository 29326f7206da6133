// HealthMonitor: warnings about known failures of training, from the metrics of a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/journal.h"

namespace troupe::algorithms {

/// A metric out of its bounds for several steps in a row.
struct HealthRule {
  enum class Bound { at_least, at_most, below_start };

  std::string_view metric;
  Bound bound;
  double limit;             ///< below_start: share of the maximum of the first steps
  std::int64_t steps;       ///< in a row
  std::string_view advice;  ///< cause and remedy
};
/// Rules for reinforcement learning: entropy collapse, unbounded KL divergence, groups with equal
/// rewards, mostly clipped updates, truncated completions, zero gradients, failed rewards.
const std::vector<HealthRule>& health_rules();

class HealthMonitor {
 public:
  explicit HealthMonitor(const std::vector<HealthRule>& rules = health_rules()) : rules_(&rules) {}
  /// Warnings of this step, which are also logged. A warning is repeated only after its condition
  /// has cleared.
  std::vector<std::string> check(std::int64_t step, const Metrics& metrics);

 private:
  struct State {
    std::int64_t seen = 0, in_a_row = 0;
    double start = 0;  ///< maximum of the first steps
  };
  bool violates(const HealthRule& rule, double value, State& state) const;

  const std::vector<HealthRule>* rules_;
  std::map<const HealthRule*, State> states_;
};

}  // namespace troupe::algorithms
