#include "algorithms/health.h"

#include <algorithm>

#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

using Bound = HealthRule::Bound;

constexpr std::int64_t first_steps = 5;

constexpr std::string_view collapse =
    "the policy samples nearly the same answers again and again. Consider grpo.clip_high=0.28, an "
    "entropy bonus, a KL term or a lower learning rate";
constexpr std::string_view divergence =
    "the policy is far from the reference and may exploit the reward. Read its samples; consider a "
    "larger KL coefficient or a lower learning rate";
constexpr std::string_view off_policy =
    "an update moves the policy too far from the weights that sampled. Consider fewer epochs or "
    "minibatches, or a lower learning rate";
constexpr std::string_view clipped =
    "most tokens are clipped and have no gradient. Consider fewer epochs or minibatches, or a "
    "lower "
    "learning rate";

}  // namespace

const std::vector<HealthRule>& health_rules() {
  static const std::vector<HealthRule> rules{
      {"entropy", Bound::below_start, 0.1, 3, collapse},
      {"policy/entropy_avg", Bound::below_start, 0.1, 3, collapse},
      {"kl", Bound::at_least, 1, 3, divergence},
      {"objective/kl", Bound::at_least, 100, 3, divergence},
      {"ppo_kl", Bound::at_least, 0.2, 3, off_policy},
      {"policy/approxkl_avg", Bound::at_least, 0.2, 3, off_policy},
      {"clip_ratio/region_mean", Bound::at_least, 0.5, 3, clipped},
      {"policy/clipfrac_avg", Bound::at_least, 0.5, 3, clipped},
      {"cispo_clip_ratio", Bound::at_least, 0.5, 3, clipped},
      {"frac_reward_zero_std", Bound::at_least, 0.9, 10,
       "nearly all groups have equal rewards and no gradient: the prompts are too easy or too "
       "hard, "
       "or the reward does not distinguish answers. Consider grpo.dynamic_sampling"},
      {"dynamic_filtering_pass_rate", Bound::at_most, 0.1, 3,
       "nine of ten sampled groups have equal rewards and are discarded: the prompts are too easy "
       "or too hard"},
      {"completions/clipped_ratio", Bound::at_least, 0.95, 10,
       "nearly all completions are truncated at rollout.max_new_tokens: their rewards may be those "
       "of unfinished texts"},
      {"grad_norm", Bound::at_most, 0, 3,
       "the gradient is zero and nothing is learned: rewards may be equal in every group"},
      {"rewards/failed", Bound::at_least, 1, 10,
       "samples with a failed reward are left out of every step"},
  };
  return rules;
}

bool HealthMonitor::violates(const HealthRule& rule, double value, State& state) const {
  ++state.seen;
  if (rule.bound == Bound::at_least) return value >= rule.limit;
  if (rule.bound == Bound::at_most) return value <= rule.limit;
  if (state.seen <= first_steps) state.start = std::max(state.start, value);
  return state.seen > first_steps && state.start > 0 && value < rule.limit * state.start;
}

std::vector<std::string> HealthMonitor::check(std::int64_t step, const Metrics& metrics) {
  std::vector<std::string> warnings;
  for (const HealthRule& rule : *rules_) {
    const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const auto& metric) {
      return metric.first == rule.metric;
    });
    if (found == metrics.end()) continue;
    State& state = states_[&rule];
    if (!violates(rule, found->second, state)) {
      state.in_a_row = 0;
      continue;
    }
    if (++state.in_a_row != rule.steps) continue;
    std::string bound =
        rule.bound == Bound::at_least ? cat("at least ", rule.limit) : cat("at most ", rule.limit);
    if (rule.bound == Bound::below_start)
      bound = cat("below ", rule.limit, " times its initial ", state.start);
    warnings.push_back(cat("step ", step, ": ", rule.metric, " is ", found->second, ", ", bound,
                           " for ", rule.steps, " steps: ", rule.advice));
    log_warning(warnings.back());
  }
  return warnings;
}

}  // namespace troupe::algorithms
