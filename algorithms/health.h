// HealthMonitor: warnings about known failures of training, from the metrics of a run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/reward_decline.h"
#include "algorithms/reward_trend.h"
#include "algorithms/training/journal.h"

namespace troupe::algorithms {

/// A spike is a loss more than six standard deviations and a tenth of the mean above the mean of
/// the steps before: of the last 50, at least 20. It lasts until a loss is within two standard
/// deviations of the mean.
class LossSpikes {
 public:
  /// The mean of the losses before, if a spike begins with `loss`. A loss that is not finite is
  /// left out.
  std::optional<double> add(double loss);

 private:
  std::vector<double> recent_;
  bool inside_ = false;
};

/// A metric out of its bounds for several steps in a row.
struct HealthRule {
  enum class Bound {
    at_least,
    at_most,
    below_start,  ///< below limit times the maximum of the first steps
    above_start,  ///< above limit times it
    above_best,   ///< above limit times the smallest mean of five steps and above the first
                  ///< steps, or above three times the first value
    below_first,  ///< of a negative metric: below limit times the minimum of the first steps, or
                  ///< below ten times the first value
  };
  /// Rules of one cause: while one of them is violated, the others give no warning.
  enum class Cause {
    equal_rewards,
    divergence,
    off_policy,
    staleness,
    clipping,
    truncation,
    failed_rewards,
    routing
  };

  std::string_view metric;
  Bound bound;
  double limit;
  std::int64_t steps;  ///< in a row, before the warning and before the end of its episode
  Cause cause;
  /// {metric}, {value}, {percent} (100 times the value), {share} (percent of the start), {start},
  /// {best}, {steps}, {method}, {kl} (the key of the KL coefficient) and {why} (of a gradient of 0)
  /// are replaced.
  std::string_view text;
  std::string_view where_above_0 = {};  ///< another metric: the rule applies where it is above 0
};
/// Rules for reinforcement learning: entropy collapse, unbounded KL divergence, groups with equal
/// rewards, mostly clipped updates, samples of weights that are too old, truncated completions,
/// zero gradients, failed rewards; for all methods: divergence.
const std::vector<HealthRule>& health_rules();

class HealthMonitor {
 public:
  /// `method`: the section of its settings, for the advice.
  explicit HealthMonitor(std::string method, const std::vector<HealthRule>& rules = health_rules())
      : method_(std::move(method)), rules_(&rules) {}

  /// Warnings of this step. A warning is not repeated until its metric was well within its bound
  /// for as many steps, and a warning of divergence never. Low entropy and groups with equal
  /// rewards are no failure while the reward rises or stays near its best; where the reward fell,
  /// they are a collapse of the policy. An evaluated reward below its start is a collapse, reward
  /// hacking (RewardDecline), or just that.
  std::vector<std::string> check(std::int64_t step, const Metrics& metrics);

 private:
  struct State {
    std::int64_t seen = 0, outside = 0, inside = 0;  ///< outside and inside: steps in a row
    double first = 0;                                ///< value of the first step
    double start = 0;                                ///< of the first steps
    double best = 0;                                 ///< smallest of `first` and means of `recent`
    std::vector<double> recent;
    double last = 0;
    bool active = false, warned = false;
  };
  enum class Position { inside, between, outside };
  Position position(const HealthRule& rule, const State& state) const;
  static double loss_bound(double limit, const State& state, bool started);
  static double logp_bound(double limit, const State& state, bool started);
  void update(const HealthRule& rule, double value, State& state);
  void check_spikes(std::int64_t step, const Metrics& metrics, std::vector<std::string>& warnings);
  static bool applies(const HealthRule& rule, const Metrics& metrics);
  /// That of an updated rule; `reinforcement`: the step has rewards.
  std::optional<std::string> warning_of(const HealthRule& rule, bool reinforcement);
  /// Evaluated rewards that fell.
  void check_decline(std::int64_t step, const Metrics& metrics, std::vector<std::string>& warnings);
  /// Whether entropy has collapsed, or groups have equal rewards, now.
  RewardDecline::Answers answers() const;
  bool muted(const HealthRule& rule, bool reinforcement) const;
  std::string text(const HealthRule& rule) const;
  std::string collapse_text(std::string_view how) const;
  std::string key_of_kl() const;
  /// The rule that explains `rule` better: entropy, where it has collapsed.
  const HealthRule& reported(const HealthRule& rule) const;

  std::string method_;
  const std::vector<HealthRule>* rules_;
  std::map<const HealthRule*, State> states_;
  RewardTrend reward_;
  RewardDecline decline_;
  LossSpikes spikes_;
  bool not_finite_ = false;
  bool equal_reported_ = false;  // last, as what it is
  bool collapsed_ = false;       // was reported, and answers have not become different since
};

}  // namespace troupe::algorithms
