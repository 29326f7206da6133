#include "algorithms/health.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

using Bound = HealthRule::Bound;
using Cause = HealthRule::Cause;

constexpr std::int64_t first_steps = 5;
constexpr std::string_view of_stale = "staleness/max";

constexpr std::string_view collapse =
    "entropy collapsed to {value} ({share} % of its initial {start}). Consider "
    "{method}.clip_high = 0.28, {method}.entropy_coef, {kl} or a lower train.learning_rate";
constexpr std::string_view noise =
    "entropy rose to {value} ({share} % of its initial {start}): samples become random. Consider a "
    "lower train.learning_rate, a lower {method}.entropy_coef or a higher {kl}";
constexpr std::string_view far_away =
    "the KL divergence from the reference is {value} for {steps} steps: the policy may exploit the "
    "reward. Read samples.txt; consider a higher {kl} or a lower train.learning_rate";
constexpr std::string_view off_policy =
    "an update moves the policy by a KL divergence of {value} for {steps} steps, far from the "
    "weights that sampled. Consider fewer {method}.epochs or {method}.minibatches, or a lower "
    "train.learning_rate";
constexpr std::string_view stale =
    "the policy has moved too far from the weights that sampled, which are up to async.eta batches "
    "older: {metric} is {value} for {steps} steps. Consider a lower async.eta or a lower "
    "train.learning_rate";
constexpr std::string_view clipped =
    "{percent} % of the tokens are clipped for {steps} steps and have no gradient. Consider fewer "
    "{method}.epochs or {method}.minibatches, or a lower train.learning_rate";
constexpr std::string_view diverged =
    "{metric} rose to {value}, its best was {best}: the run may diverge. Consider a lower "
    "train.learning_rate, more train.warmup_steps or a lower train.max_grad_norm";
constexpr std::string_view uneven =
    "a router of the mixture of experts collapses: the entropy of its choices fell to {value} of "
    "that of even ones, {share} % of its initial {start}, for {steps} steps. Consider a load-"
    "balancing loss (train.experts.losses), train.experts.bias_rate or a lower train.learning_rate";
constexpr std::string_view unlikely =
    "{metric} fell to {value}, from {start} in the first steps: answers become improbable without "
    "bound. Consider a lower train.learning_rate or a higher {method}.beta";

}  // namespace

std::optional<double> LossSpikes::add(double loss) {
  constexpr std::size_t fewest = 20, most = 50;
  if (!std::isfinite(loss)) return std::nullopt;
  const auto count = static_cast<double>(recent_.size());
  double mean = 0, squares = 0;
  for (const double each : recent_) mean += each / count;
  for (const double each : recent_) squares += (each - mean) * (each - mean) / count;
  const double std_dev = std::sqrt(squares);
  const double limit = mean + std::max(6 * std_dev, 0.1 * std::abs(mean));
  const bool known = recent_.size() >= fewest;
  const bool begins = known && !inside_ && loss > limit;
  if (begins) inside_ = true;
  if (inside_ && loss <= mean + std::max(2 * std_dev, 0.03 * std::abs(mean))) inside_ = false;
  // A spike counts as its limit, so that it hides no further one.
  recent_.push_back(known ? std::min(loss, limit) : loss);
  if (recent_.size() > most) recent_.erase(recent_.begin());
  return begins ? std::optional(mean) : std::nullopt;
}

const std::vector<HealthRule>& health_rules() {
  static const std::vector<HealthRule> rules{
      {"entropy", Bound::below_start, 0.1, 3, Cause::equal_rewards, collapse},
      {"policy/entropy_avg", Bound::below_start, 0.1, 3, Cause::equal_rewards, collapse},
      {"grad_norm", Bound::at_most, 0, 3, Cause::equal_rewards,
       "zero gradient for {steps} steps: {why}"},
      {"frac_reward_zero_std", Bound::at_least, 0.9, 10, Cause::equal_rewards,
       "{percent} % of the groups have equal rewards for {steps} steps and no gradient: the "
       "prompts are too easy or too hard, or the reward does not distinguish answers. Consider "
       "{method}.dynamic_sampling"},
      {"dynamic_filtering_pass_rate", Bound::at_most, 0.1, 3, Cause::equal_rewards,
       "{percent} % of the sampled groups have different rewards for {steps} steps, the others are "
       "discarded: the prompts are too easy or too hard. Consider other prompts or a higher "
       "rollout.temperature"},
      {"loss", Bound::above_best, 2, 5, Cause::divergence, diverged},
      {"logps/chosen", Bound::below_first, 3, 3, Cause::divergence, unlikely},
      {"entropy", Bound::above_start, 5, 3, Cause::divergence, noise},
      {"policy/entropy_avg", Bound::above_start, 5, 3, Cause::divergence, noise},
      {"kl", Bound::at_least, 1, 3, Cause::divergence, far_away},
      {"objective/kl", Bound::at_least, 100, 3, Cause::divergence, far_away},
      {"ppo_kl", Bound::at_least, 0.2, 3, Cause::off_policy, off_policy},
      {"policy/approxkl_avg", Bound::at_least, 0.2, 3, Cause::off_policy, off_policy},
      {"sampling/is_oob_ratio", Bound::at_least, 0.1, 3, Cause::staleness, stale, of_stale},
      {"sampling/sampling_logp_difference/mean", Bound::at_least, 0.2, 3, Cause::staleness, stale,
       of_stale},
      {"clip_ratio/region_mean", Bound::at_least, 0.5, 3, Cause::clipping, clipped},
      {"policy/clipfrac_avg", Bound::at_least, 0.5, 3, Cause::clipping, clipped},
      {"cispo_clip_ratio", Bound::at_least, 0.5, 3, Cause::clipping, clipped},
      {"completions/clipped_ratio", Bound::at_least, 0.95, 10, Cause::truncation,
       "{percent} % of the completions are truncated for {steps} steps: their rewards may be those "
       "of unfinished texts. Consider a higher rollout.max_new_tokens"},
      {"moe/load_entropy", Bound::below_start, 0.75, 3, Cause::routing, uneven},
      {"rewards/failed", Bound::at_least, 1, 10, Cause::failed_rewards,
       "{value} samples have no reward, and some for {steps} steps: they are not trained on. See "
       "rewards/failed/... in metrics.jsonl and the reward rules"},
  };
  return rules;
}

namespace {

double mean_of_recent(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Nats that a log-probability may lose: of a token on average, or of a whole answer.
double fall(double start) {
  return start > -20 ? 5 : 50;
}

}  // namespace

void HealthMonitor::update(const HealthRule& rule, double value, State& state) {
  ++state.seen;
  state.last = value;
  const bool first = state.seen <= first_steps;
  if (state.seen == 1) state.first = state.best = value;
  if (first && rule.bound == Bound::below_first)
    state.start = state.seen == 1 ? value : std::min(state.start, value);
  else if (first)
    state.start = state.seen == 1 ? value : std::max(state.start, value);
  if (rule.bound == Bound::above_best) {
    state.recent.push_back(value);
    if (state.recent.size() > first_steps) state.recent.erase(state.recent.begin());
    if (!first) state.best = std::min(state.best, mean_of_recent(state.recent));
  }
  const Position where = position(rule, state);
  state.outside = where == Position::outside ? state.outside + 1 : 0;
  state.inside = where == Position::inside ? state.inside + 1 : 0;
  if (state.inside < rule.steps) return;
  if (rule.cause == Cause::equal_rewards && state.active) collapsed_ = false;
  state.active = false;
}

HealthMonitor::Position HealthMonitor::position(const HealthRule& rule, const State& state) const {
  const double value = state.last;
  const auto above = [&](double limit, double back) {
    return value >= limit ? Position::outside : value < back ? Position::inside : Position::between;
  };
  const auto below = [&](double limit, double back) {
    return value <= limit ? Position::outside : value > back ? Position::inside : Position::between;
  };
  if (std::isnan(value)) return Position::between;
  if (rule.bound == Bound::at_least) return above(rule.limit, 0.8 * rule.limit);
  if (rule.bound == Bound::at_most) return below(rule.limit, 1.5 * rule.limit);
  // The start is known after a few steps; until then only a jump from the first one counts.
  const bool started = state.seen > first_steps;
  const double bound = rule.limit * state.start;
  switch (rule.bound) {
    case Bound::below_start:
      return started && state.start > 0 ? below(bound, 2 * bound) : Position::between;
    case Bound::above_start:
      return started && state.start > 0 && value >= 1 ? above(bound, 0.8 * bound)
                                                      : Position::between;
    case Bound::above_best:
      return state.first > 0 ? above(loss_bound(rule.limit, state, started), 0) : Position::between;
    case Bound::below_first:
      return state.first < 0 ? below(logp_bound(rule.limit, state, started), state.first)
                             : Position::between;
    case Bound::at_least:
    case Bound::at_most:
      break;
  }
  return Position::between;
}

// A loss above three times the first one or, once learning has begun, far above its best and above
// the first steps. Half a nat is noise.
double HealthMonitor::loss_bound(double limit, const State& state, bool started) {
  const double jump = 3 * state.first;
  const double learned = started ? std::max(limit * state.best, 1.2 * state.start) : jump;
  return std::max(std::min(jump, learned), state.best + 0.5);
}

double HealthMonitor::logp_bound(double limit, const State& state, bool started) {
  const double jump = 10 * state.first - fall(state.first);
  if (!started) return jump;
  return std::max(jump, std::min(limit * state.start, state.start - fall(state.start)));
}

bool HealthMonitor::muted(const HealthRule& rule, bool reinforcement) const {
  const State& state = states_.at(&rule);
  if (rule.cause == Cause::equal_rewards && reinforcement) {
    if (!reward_.stopped()) return true;
    // Where there were gradients, the next steps tell whether it is a collapse.
    const bool had_some = rule.bound == Bound::at_most && state.start > 0;
    if (had_some && !reward_.is_known() && !reward_.fell()) return true;
  }
  return std::ranges::any_of(states_, [&](const auto& entry) {
    const Cause cause = entry.first->cause;
    // A collapsed policy may also never end its answers.
    const bool explains =
        cause == rule.cause || (cause == Cause::equal_rewards && rule.cause == Cause::truncation);
    return entry.first != &rule && explains && entry.second.active;
  });
}

const HealthRule& HealthMonitor::reported(const HealthRule& rule) const {
  if (rule.cause != Cause::equal_rewards) return rule;
  for (const auto& [other, state] : states_) {
    const bool collapsed = other->bound == Bound::below_start && state.seen > first_steps &&
                           state.last <= other->limit * state.start;
    if (collapsed) return *other;
  }
  return rule;
}

namespace {

constexpr std::string_view equal_groups =
    "all rewards in each group are equal. Consider grpo.dynamic_sampling, a higher "
    "rollout.temperature or prompts of another difficulty";
constexpr std::string_view no_gradient =
    "nothing is learned. Check the data, train.learning_rate and the settings of {method}";

// What the rule says of the answers of a collapsed policy.
std::string_view collapse_sign(const HealthRule& rule) {
  return rule.bound == Bound::below_start ? "entropy collapsed"
                                          : "the rewards of a group became equal";
}

std::string three_digits(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.3g", value);
  return buffer;
}

}  // namespace

std::string HealthMonitor::text(const HealthRule& rule) const {
  const State& state = states_.at(&rule);
  const std::pair<std::string_view, std::string> values[] = {
      {"{why}", std::string(method_ == "grpo" ? equal_groups : no_gradient)},
      {"{metric}", std::string(rule.metric)},
      {"{value}", three_digits(state.last)},
      {"{percent}", three_digits(100 * state.last)},
      {"{share}", three_digits(100 * state.last / state.start)},
      {"{start}", three_digits(state.start)},
      {"{best}", three_digits(state.best)},
      {"{steps}", cat(rule.steps)},
      {"{kl}", key_of_kl()},
      {"{method}", method_}};
  std::string out(rule.text);
  for (const auto& [name, value] : values)
    for (auto at = out.find(name); at != std::string::npos; at = out.find(name, at + value.size()))
      out.replace(at, name.size(), value);
  return out;
}

// The loss of reinforcement learning is around 0, whatever the policy does.
void HealthMonitor::check_spikes(std::int64_t step, const Metrics& metrics,
                                 std::vector<std::string>& warnings) {
  const double* loss = find_metric(metrics, "loss");
  if (!loss || find_metric(metrics, "reward")) return;
  const auto before = spikes_.add(*loss);
  if (!before) return;
  const double* norm = find_metric(metrics, "grad_norm");
  warnings.push_back(
      cat("step ", step, ": loss spike: ", three_digits(*loss), ", ", three_digits(*before),
          " on average before", norm ? cat(", gradient norm ", three_digits(*norm)) : "",
          ". If it recurs, consider a lower train.learning_rate or train.max_grad_norm"));
}

RewardDecline::Answers HealthMonitor::answers() const {
  using Answers = RewardDecline::Answers;
  Answers found = Answers::different;
  for (const auto& [rule, state] : states_) {
    if (rule->cause != Cause::equal_rewards || state.outside == 0) continue;
    if (state.outside >= rule->steps) return Answers::equal_for_long;
    found = Answers::equal;
  }
  return found;
}

std::string HealthMonitor::key_of_kl() const {
  return method_ == "ppo" ? "ppo.kl_coef" : cat(method_, ".beta");
}

std::string HealthMonitor::collapse_text(std::string_view how) const {
  const auto reward = reward_.change();
  return cat("policy collapse: the reward fell from ", three_digits(reward.start),
             " in the first steps to ", three_digits(reward.last), " while ", how,
             ". Lower train.learning_rate or raise ", key_of_kl(),
             ", and start again from a checkpoint before the fall");
}

void HealthMonitor::check_decline(std::int64_t step, const Metrics& metrics,
                                  std::vector<std::string>& warnings) {
  const auto found = decline_.add(metrics, reward_, answers());
  if (!found) return;
  const std::string from = cat("eval/", found->name, " fell to ", three_digits(found->now),
                               ", from ", three_digits(found->start), " before training");
  const auto reward = reward_.change();
  std::string text;
  switch (found->kind) {
    case RewardDecline::Kind::fell:
      text = cat(from, ". Lower train.learning_rate or raise ", key_of_kl(),
                 "; train.keep_best keeps the best checkpoint");
      break;
    case RewardDecline::Kind::collapse:
      collapsed_ = true;
      for (auto& [rule, state] : states_)
        if (rule->cause == Cause::equal_rewards) state.active = true;
      text = cat("policy collapse: ", from,
                 ", and the answers to a prompt have become equal. "
                 "Lower train.learning_rate or raise ",
                 key_of_kl(), ", and start again from a checkpoint before the fall");
      break;
    case RewardDecline::Kind::hacking:
      text = cat("reward hacking: the training reward rose from ", three_digits(reward.start),
                 " to ", three_digits(reward.now), " while ", from,
                 ". Read samples.txt; correct the reward, or raise ", key_of_kl());
      break;
    case RewardDecline::Kind::length_hacking:
      text = cat("reward hacking: the training reward rose from ", three_digits(reward.start),
                 " to ", three_digits(reward.now), " and completions/mean_length from ",
                 three_digits(found->start), " to ", three_digits(found->now), " while eval/",
                 found->name, " did not rise. Read samples.txt; the reward may favor length");
      break;
  }
  warnings.push_back(cat("step ", step, ": ", text));
}

bool HealthMonitor::applies(const HealthRule& rule, const Metrics& metrics) {
  if (rule.where_above_0.empty()) return true;
  const double* other = find_metric(metrics, rule.where_above_0);
  return other && *other > 0;
}

std::vector<std::string> HealthMonitor::check(std::int64_t step, const Metrics& metrics) {
  const auto find = [&](std::string_view name) { return find_metric(metrics, name); };
  std::vector<std::string> warnings;
  const double* reward = find("reward");
  if (reward) reward_.add(*reward);
  if (const double* loss = find("loss"); loss && !std::isfinite(*loss) && !not_finite_) {
    not_finite_ = true;
    warnings.push_back(cat("step ", step, ": loss is ", *loss,
                           ". Consider a lower train.learning_rate or train.max_grad_norm"));
  }
  check_spikes(step, metrics, warnings);
  std::vector<const HealthRule*> measured;
  for (const HealthRule& rule : *rules_) {
    const double* value = find(rule.metric);
    // The loss of reinforcement learning is around 0, whatever the policy does.
    if (!value || !applies(rule, metrics) || (reward && rule.bound == Bound::above_best)) continue;
    update(rule, *value, states_[&rule]);
    measured.push_back(&rule);
  }
  check_decline(step, metrics, warnings);
  for (const HealthRule* rule : measured)
    if (auto warning = warning_of(*rule, reward))
      warnings.push_back(cat("step ", step, ": ", *warning));
  return warnings;
}

std::optional<std::string> HealthMonitor::warning_of(const HealthRule& rule, bool reinforcement) {
  State& state = states_[&rule];
  const bool collapsed = rule.cause == Cause::equal_rewards && reinforcement && reward_.fell();
  const bool again = rule.cause != Cause::divergence || !state.warned;
  if (state.outside < rule.steps || !again || (collapsed && collapsed_)) return std::nullopt;
  // Where only equal rewards were reported, a collapse is, too.
  const bool more = collapsed && equal_reported_;
  if (!more && (state.active || muted(rule, reinforcement))) return std::nullopt;
  const HealthRule& shown = reported(rule);
  state.active = state.warned = true;
  states_[&shown].active = true;
  if (rule.cause == Cause::equal_rewards)
    equal_reported_ = !collapsed && shown.bound != Bound::below_start;
  if (!collapsed) return text(shown);
  collapsed_ = true;
  decline_.collapsed();
  return collapse_text(collapse_sign(shown));
}

}  // namespace troupe::algorithms
