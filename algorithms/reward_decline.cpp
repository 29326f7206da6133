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
}

std::optional<RewardDecline::Finding> RewardDecline::add(const Metrics& metrics,
                                                         const RewardTrend& training,
                                                         bool answers_are_equal) {
  if (const double* length = find_metric(metrics, "completions/mean_length")) {
    length_ = *length;
    if (first_length_ == 0) first_length_ = *length;
  }
  const double* reward = find_metric(metrics, "eval/reward");
  if (!reward) return std::nullopt;
  reward_.add(*reward, spread_of(metrics));
  if (const double* passed = find_metric(metrics, "eval/pass@1"))
    passed_.add(*passed, std::sqrt(std::max(0.0, *passed * (1 - *passed))));
  const bool rewards_fell = reward_.start && reward_.fell(),
             passes_fell = passed_.start && passed_.fell();
  const bool pass_rose = !passed_.start || passed_.now > *passed_.start,
             reward_rose = reward_.start && reward_.now > *reward_.start;
  const bool no_gain = passed_.start ? !pass_rose : !reward_rose;
  longer_ = training.rose() && length_grew() && no_gain ? longer_ + 1 : 0;
  if (!rewards_fell && !passes_fell && longer_ == 0) {
    const bool back = reward_.low == 0 && passed_.low == 0;
    if (back) reported_ = false;
    return std::nullopt;
  }
  if (reported_) return std::nullopt;
  if (!rewards_fell && !passes_fell && longer_ < 2) return std::nullopt;
  reported_ = true;
  if (!rewards_fell && !passes_fell)
    return Finding{Kind::length_hacking, passed_.start ? "pass@1" : "reward", first_length_,
                   length_};
  const Evaluated& lower = rewards_fell ? reward_ : passed_;
  const Kind kind = training.rose()     ? Kind::hacking
                    : answers_are_equal ? Kind::collapse
                                        : Kind::fell;
  return Finding{kind, rewards_fell ? "reward" : "pass@1", *lower.start, lower.now};
}

}  // namespace troupe::algorithms
