#include "algorithms/health.h"

#include <algorithm>

#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

using Bound = Sign::Bound;

constexpr std::int64_t first_steps = 5;

constexpr std::string_view collapse =
    "the policy is sure of nearly every token and samples the same answers again and again; "
    "clip-higher (clip_high 0.28), an entropy "
    "bonus, a "
    "KL term or a lower learning rate keep it open";
constexpr std::string_view runaway =
    "the policy is far away from the reference and may be exploiting the reward: read its samples; "
    "a larger KL coefficient or a lower "
    "learning rate holds it";
constexpr std::string_view stale =
    "an update moves the policy too far from the weights that sampled: fewer passes or minibatches "
    "a round, or a "
    "lower learning rate";
constexpr std::string_view clipped =
    "most tokens are clipped and have no gradient: fewer passes or minibatches a round, or a lower "
    "learning rate";

}  // namespace

const std::vector<Sign>& signs_of_trouble() {
  static const std::vector<Sign> signs{
      {"entropy", Bound::below_start, 0.1, 3, collapse},
      {"policy/entropy_avg", Bound::below_start, 0.1, 3, collapse},
      {"kl", Bound::at_least, 1, 3, runaway},
      {"objective/kl", Bound::at_least, 100, 3, runaway},
      {"ppo_kl", Bound::at_least, 0.2, 3, stale},
      {"policy/approxkl_avg", Bound::at_least, 0.2, 3, stale},
      {"clip_ratio/region_mean", Bound::at_least, 0.5, 3, clipped},
      {"policy/clipfrac_avg", Bound::at_least, 0.5, 3, clipped},
      {"cispo_clip_ratio", Bound::at_least, 0.5, 3, clipped},
      {"frac_reward_zero_std", Bound::at_least, 0.9, 10,
       "nearly all groups have equal rewards and teach nothing: the prompts are too easy or too "
       "hard, or the reward cannot tell answers "
       "apart; "
       "dynamic sampling draws others"},
      {"dynamic_filtering_pass_rate", Bound::at_most, 0.1, 3,
       "nine of ten groups that are drawn have equal rewards and are thrown away: the prompts are "
       "too easy or too hard"},
      {"completions/clipped_ratio", Bound::at_least, 0.95, 10,
       "nearly all answers run into rollout.max_new_tokens: their rewards may be those of "
       "unfinished texts"},
      {"grad_norm", Bound::at_most, 0, 3, "the gradient is exactly 0: nothing is being learned"},
      {"rewards/failed", Bound::at_least, 1, 10,
       "samples whose reward failed are left out in every step"},
  };
  return signs;
}

bool Watch::shows(const Sign& sign, double value, State& state) const {
  ++state.seen;
  if (sign.bound == Bound::at_least) return value >= sign.limit;
  if (sign.bound == Bound::at_most) return value <= sign.limit;
  if (state.seen <= first_steps) state.start = std::max(state.start, value);
  return state.seen > first_steps && state.start > 0 && value < sign.limit * state.start;
}

std::vector<std::string> Watch::look(std::int64_t step, const Metrics& metrics) {
  std::vector<std::string> warnings;
  for (const Sign& sign : *signs_) {
    const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const auto& metric) {
      return metric.first == sign.metric;
    });
    if (found == metrics.end()) continue;
    State& state = states_[&sign];
    if (!shows(sign, found->second, state)) {
      state.in_a_row = 0;
      continue;
    }
    if (++state.in_a_row != sign.steps) continue;
    std::string bound =
        sign.bound == Bound::at_least ? cat("at least ", sign.limit) : cat("at most ", sign.limit);
    if (sign.bound == Bound::below_start)
      bound = cat("below ", sign.limit, " times the ", state.start, " that it began with");
    warnings.push_back(cat("step ", step, ": ", sign.metric, " is ", found->second, ", ", bound,
                           " for ", sign.steps, " steps: ", sign.meaning));
    log_warning(warnings.back());
  }
  return warnings;
}

}  // namespace troupe::algorithms
