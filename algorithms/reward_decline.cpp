#include "algorithms/reward_decline.h"

#include <algorithm>
#include <cmath>

namespace troupe::algorithms {

namespace {

// Of the rewards of single completions, if they have one part; 0: not known.
double spread_of(const Metrics& metrics) {
  double found = 0;
  int parts = 0;
  for (const auto& [name, value] : metrics) {
    if (!name.starts_with("eval/rewards/") || !name.ends_with("/std")) continue;
    ++parts;
    found = value;
  }
  return parts == 1 && std::isfinite(found) ? found : 0;
}

}  // namespace

void RewardDecline::Evaluated::add(double value, double spread) {
  if (!std::isfinite(value)) return;
  if (!start) {
    start = value;
    scale = std::max(std::abs(value), spread);
  }
  now = value;
  low = now < *start - 0.2 * scale ? low + 1 : 0;
  low_by_value = now < *start - 0.2 * std::abs(*start) ? low_by_value + 1 : 0;
}

std::optional<RewardDecline::Finding> RewardDecline::add(const Metrics& metrics,
                                                         const RewardTrend& training,
                                                         Answers answers) {
  if (const double* length = find_metric(metrics, "completions/mean_length")) {
    length_ = *length;
    if (first_length_ == 0) first_length_ = *length;
  }
  if (find_metric(metrics, "eval/reward")) {
    if (auto found = evaluated(metrics, training, answers)) return found;
  }
  return named(training, answers);
}

std::optional<RewardDecline::Finding> RewardDecline::evaluated(const Metrics& metrics,
                                                               const RewardTrend& training,
                                                               Answers answers) {
  reward_.add(*find_metric(metrics, "eval/reward"), spread_of(metrics));
  if (const double* passed = find_metric(metrics, "eval/pass@1"))
    passed_.add(*passed, std::sqrt(std::max(0.0, *passed * (1 - *passed))));
  const bool rewards_fell = reward_.start && reward_.fell(answers),
             passes_fell = passed_.start && passed_.fell(answers);
  const bool pass_rose = !passed_.start || passed_.now > *passed_.start,
             reward_rose = reward_.start && reward_.now > *reward_.start;
  const bool no_gain = passed_.start ? !pass_rose : !reward_rose;
  longer_ = training.rose() && length_grew() && no_gain ? longer_ + 1 : 0;
  lower_ = rewards_fell ? Lower::reward : passes_fell ? Lower::passes : Lower::none;
  fallen_ = lower_ != Lower::none ? fallen_ + 1 : 0;
  if (lower_ != Lower::none) return std::nullopt;
  const bool back = reward_.low_by_value == 0 && passed_.low_by_value == 0;
  if (longer_ == 0 && back) reported_ = false;
  if (longer_ < 2 || reported_) return std::nullopt;
  reported_ = true;
  return Finding{Kind::length_hacking, passed_.start ? "pass@1" : "reward", first_length_, length_};
}

std::optional<RewardDecline::Finding> RewardDecline::named(const RewardTrend& training,
                                                           Answers answers) {
  if (lower_ == Lower::none || reported_) return std::nullopt;
  Kind kind = Kind::fell;
  if (training.rose())
    kind = Kind::hacking;
  else if (answers == Answers::equal_for_long)
    kind = Kind::collapse;
  else if (!training.is_known() && fallen_ < 2)
    return std::nullopt;
  else if (answers == Answers::equal)
    kind = Kind::collapse;
  reported_ = true;
  const bool rewards = lower_ == Lower::reward;
  const Evaluated& lower = rewards ? reward_ : passed_;
  return Finding{kind, rewards ? "reward" : "pass@1", *lower.start, lower.now};
}

}  // namespace troupe::algorithms
