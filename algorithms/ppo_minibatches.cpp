#include "algorithms/ppo_minibatches.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;
using Numbers = std::vector<double>;

std::size_t at(const Experience& b, std::size_t sequence) {
  return static_cast<std::size_t>(b.offsets[sequence]);
}

// [T] KL estimates of the trained tokens, 0 elsewhere.
Numbers token_kl(const Experience& b, const PpoConfig& config) {
  Numbers log_ratio(b.tokens.size(), 0);
  if (b.reference_logp.empty()) return log_ratio;
  for (std::size_t t = 0; t < log_ratio.size(); ++t)
    if (b.mask[t] != 0)
      log_ratio[t] = static_cast<double>(b.old_logp[t]) - static_cast<double>(b.reference_logp[t]);
  return kl(config.kl, engine::loss::Expr(log_ratio), config.kl_clamp).values();
}

// Rewards of a rollout step: per token, and one step after the end of each sequence.
struct Rewards {
  Numbers tokens;                   ///< [T]
  std::vector<AfterEnd> after_end;  ///< [N]
  Numbers scores;                   ///< [N] rewards of the samples without the KL penalty
  std::int64_t lost_steps = 0;      ///< process rewards without a trained token
};

// Adds the reward of sample n to its tokens.
void add_reward(Rewards& rewards, const RolloutBatch& samples, std::size_t n,
                const PpoConfig& config) {
  const Experience& b = samples.batch;
  const auto& result = samples.rewards[n];
  const auto begin = at(b, n), length = at(b, n + 1) - begin,
             answer = samples.completions[n].ids.size();
  const auto mask = std::span(b.mask).subspan(begin, length);
  const auto tokens = std::span(rewards.tokens).subspan(begin, length);
  const auto last = last_trained(mask);
  if (last < 0 || !result.reward) return;
  Numbers steps;
  std::vector<std::int32_t> ends;
  for (const auto& step : result.steps) {
    steps.push_back(step.reward - config.step_baseline);
    ends.push_back(static_cast<std::int32_t>(length - answer) + step.end);
  }
  steps = credited(steps, config.credit, config.credit_temperature);
  rewards.lost_steps += add_steps(tokens, mask, ends, steps);
  const bool ended = !truncated(samples.completions[n]);
  const double score = shaped(*result.reward - result.from_steps, ended, config.score);
  rewards.scores[n] = score + std::accumulate(steps.begin(), steps.end(), 0.0);
  const bool room = ended && answer < static_cast<std::size_t>(config.sampling.max_new_tokens);
  if (config.place == ScorePlace::after_end && room)
    rewards.after_end[n] = {.reward = score, .ends = true};
  else
    tokens[static_cast<std::size_t>(last)] += score;
}

// Whitens token rewards and the rewards after the end together; the mean stays.
void whiten(Rewards& rewards, const Experience& b, Variance variance) {
  Numbers all = rewards.tokens;
  std::vector<float> mask = b.mask;
  for (const AfterEnd& after_end : rewards.after_end) {
    all.push_back(after_end.reward);
    mask.push_back(after_end.ends ? 1.0f : 0.0f);
  }
  const auto white = whitened(all, mask, {.variance = variance, .shift_mean = false});
  for (std::size_t t = 0; t < b.tokens.size(); ++t) rewards.tokens[t] = white[t];
  for (std::size_t n = 0; n < rewards.after_end.size(); ++n)
    rewards.after_end[n].reward = white[b.tokens.size() + n];
}

struct Summary {
  double mean = 0, minimum = 0, maximum = 0, variance = 0;
};

// Summary of the elements whose mask is not 0; an empty mask selects all.
Summary summary(std::span<const double> x, std::span<const float> mask) {
  Summary s;
  double count = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!mask.empty() && mask[i] == 0) continue;
    s.minimum = count == 0 ? x[i] : std::min(s.minimum, x[i]);
    s.maximum = count == 0 ? x[i] : std::max(s.maximum, x[i]);
    count += 1;
    sum += x[i];
    squares += x[i] * x[i];
  }
  if (count == 0) s.mean = s.minimum = s.maximum = std::nan("");
  if (count == 0) return s;
  s.mean = sum / count;
  s.variance = std::max(0.0, squares / count - s.mean * s.mean);
  return s;
}

void add(Metrics& metrics, const std::string& name, const Summary& s) {
  metrics.emplace_back(name + "/mean", s.mean);
  metrics.emplace_back(name + "/max", s.maximum);
  metrics.emplace_back(name + "/min", s.minimum);
}

double sum_of(const Numbers& x) {
  return std::accumulate(x.begin(), x.end(), 0.0);
}

// [T] the value of the state before each token, which the critic read at the token before it.
Numbers values_before(const Experience& b, const std::vector<float>& critic_values) {
  Numbers values(b.tokens.size(), 0);
  for (std::size_t n = 0; n + 1 < b.offsets.size(); ++n)
    for (std::size_t t = at(b, n) + 1; t < at(b, n + 1); ++t)
      if (b.mask[t] != 0) values[t] = static_cast<double>(critic_values[t - 1]);
  return values;
}

// Advantages and returns of the whole batch, [T]; whitened if configured.
Gae estimate_gae(Rewards& rewards, const Numbers& values, const std::vector<float>& critic_values,
                 const RolloutBatch& samples, const PpoConfig& config) {
  const Experience& b = samples.batch;
  Gae all;
  for (std::size_t n = 0; n < samples.completions.size(); ++n) {
    const auto begin = at(b, n), length = at(b, n + 1) - begin;
    const auto mask = std::span(b.mask).subspan(begin, length);
    AfterEnd& after_end = rewards.after_end[n];
    const bool has_value_after_end = after_end.ends || (config.truncated == Bootstrap::value &&
                                                        truncated(samples.completions[n]));
    if (const auto last = last_trained(mask); has_value_after_end && last >= 0)
      after_end.value = static_cast<double>(critic_values[begin + static_cast<std::size_t>(last)]);
    const auto one = gae(std::span(rewards.tokens).subspan(begin, length),
                         std::span(values).subspan(begin, length), mask, config.gae, after_end);
    all.advantages.insert(all.advantages.end(), one.advantages.begin(), one.advantages.end());
    all.returns.insert(all.returns.end(), one.returns.begin(), one.returns.end());
  }
  if (config.whiten_advantages)
    all.advantages = whitened(all.advantages, b.mask, {.variance = config.variance});
  return all;
}

std::vector<float> column(const Numbers& numbers) {
  std::vector<float> out;
  for (const double x : numbers) out.push_back(static_cast<float>(x));
  return out;
}

// Metrics per sample and over the batch, with the names of TRL.
Metrics objective_metrics(const RolloutBatch& samples, const Rewards& rewards, const Numbers& kl,
                          double kl_coef, const PpoConfig& config) {
  const Experience& b = samples.batch;
  const auto count = static_cast<double>(samples.completions.size());
  double nll = 0, ended = 0;
  for (std::size_t t = 0; t < b.tokens.size(); ++t)
    nll -= b.mask[t] != 0 ? static_cast<double>(b.old_logp[t]) : 0;
  for (const auto& completion : samples.completions) ended += truncated(completion) ? 0 : 1;
  const double per_sample_kl = sum_of(kl) / count, scores = sum_of(rewards.scores) / count;
  const double penalty = config.kl_place == KlPlace::reward ? kl_coef * per_sample_kl : 0;
  return {{"objective/kl", per_sample_kl},
          {"objective/kl_coef", kl_coef},
          {"objective/entropy", nll / count},
          {"objective/non_score_reward", -penalty},
          {"objective/rlhf_reward", scores - penalty},
          {"objective/scores", scores},
          {"val/num_eos_tokens", ended}};
}

Metrics ppo_reward_metrics(const RolloutBatch& samples, const Rewards& rewards) {
  Numbers numbers;
  double steps = 0;
  for (const auto& result : samples.rewards) {
    if (result.reward) numbers.push_back(*result.reward);
    steps += static_cast<double>(result.steps.size());
  }
  const Summary s = summary(numbers, {});
  const auto all = static_cast<double>(samples.rewards.size()),
             count = static_cast<double>(numbers.size());
  const double std = count > 1 ? std::sqrt(s.variance * count / (count - 1)) : 0;
  const bool any = count > 0;
  Metrics metrics{{"reward", s.mean},
                  {"reward_std", any ? std : std::nan("")},
                  {"rewards/failed", all - count}};
  if (steps > 0) {
    metrics.emplace_back("rewards/steps_mean_count", steps / all);
    metrics.emplace_back("rewards/steps_lost", static_cast<double>(rewards.lost_steps));
  }
  return metrics;
}

// Metrics of the critic before the update, with the names of verl.
Metrics critic_metrics(const Experience& b, const Rewards& rewards, const Numbers& values,
                       const Gae& gae) {
  Metrics metrics;
  add(metrics, "critic/score", summary(rewards.scores, {}));
  add(metrics, "critic/values", summary(values, b.mask));
  add(metrics, "critic/returns", summary(gae.returns, b.mask));
  add(metrics, "critic/advantages", summary(gae.advantages, b.mask));
  Numbers errors(values.size());
  for (std::size_t t = 0; t < values.size(); ++t) errors[t] = gae.returns[t] - values[t];
  const double variance = summary(gae.returns, b.mask).variance;
  if (variance > 0)
    metrics.emplace_back("critic/vf_explained_var",
                         1 - summary(errors, b.mask).variance / variance);
  return metrics;
}

// A permutation of 0..count-1, a different one for every epoch of every rollout step.
std::vector<std::int32_t> permutation(std::int32_t count, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[uniform_below(i + 1, seed, epoch, i)]);
  return order;
}

}  // namespace

Experience critic_inputs(const Experience& batch) {
  Experience states = batch;
  states.sampling_mask = {};
  for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n) {
    for (std::size_t t = at(batch, n); t < at(batch, n + 1); ++t) {
      const bool before_one = t + 1 < at(batch, n + 1) && batch.mask[t + 1] != 0;
      states.mask[t] = before_one || batch.mask[t] != 0 ? 1.0f : 0.0f;
    }
  }
  return states;
}

double mean_kl(const Experience& batch, const PpoConfig& config) {
  return batch.sequences() == 0 ? 0 : sum_of(token_kl(batch, config)) / batch.sequences();
}

void compute_advantages(RolloutBatch& samples, const std::vector<float>& critic_values,
                        double kl_coef, const PpoConfig& config) {
  Experience& b = samples.batch;
  check(critic_values.size() == b.tokens.size(), "ppo: one value per token is needed");
  check(samples.rewards.size() == samples.completions.size(),
        "ppo: one reward per sample is needed");
  const Numbers kl = token_kl(b, config), values = values_before(b, critic_values);
  Rewards rewards{Numbers(b.tokens.size(), 0), std::vector<AfterEnd>(samples.completions.size()),
                  Numbers(samples.completions.size(), 0)};
  if (config.kl_place == KlPlace::reward)
    for (std::size_t t = 0; t < kl.size(); ++t) rewards.tokens[t] = -kl_coef * kl[t];
  for (std::size_t n = 0; n < samples.completions.size(); ++n)
    add_reward(rewards, samples, n, config);
  if (config.whiten_rewards) whiten(rewards, b, config.variance);
  const Gae gae = estimate_gae(rewards, values, critic_values, samples, config);
  b.value = column(values);
  b.advantage = column(gae.advantages);
  b.returns = column(gae.returns);
  samples.metrics = objective_metrics(samples, rewards, kl, kl_coef, config);
  for (const auto& more : {ppo_reward_metrics(samples, rewards), reward_part_metrics(samples),
                           critic_metrics(b, rewards, values, gae), length_metrics(samples)})
    samples.metrics.insert(samples.metrics.end(), more.begin(), more.end());
}

std::vector<PpoMinibatch> minibatches(const RolloutBatch& samples, const PpoConfig& config,
                                      std::uint64_t rollout_step) {
  const Experience& b = samples.batch;
  const double tokens = trained_tokens(b), longest = config.sampling.max_new_tokens;
  const std::int32_t count = b.sequences();
  std::vector<PpoMinibatch> out;
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    const auto pass = rollout_step * static_cast<std::uint64_t>(config.epochs) +
                      static_cast<std::uint64_t>(epoch);
    const auto order = permutation(count, config.sampling.seed, pass);
    for (int part = 0; part < config.minibatches; ++part) {
      const auto begin = order.begin() + count * part / config.minibatches,
                 end = order.begin() + count * (part + 1) / config.minibatches;
      if (begin == end) continue;
      PpoMinibatch minibatch{b.select({begin, end}), {}};
      minibatch.critic = minibatch.policy;
      set_constants(minibatch.policy, config.policy.aggregation, tokens / config.minibatches,
                    longest);
      set_constants(minibatch.critic, Aggregation::token_local, 0, longest);
      minibatch.policy.value.clear();
      minibatch.policy.returns.clear();
      minibatch.critic.old_logp.clear();
      minibatch.critic.sampling_mask = {};
      minibatch.critic.rollout_logp.clear();
      minibatch.critic.reference_logp.clear();
      minibatch.critic.advantage.clear();
      out.push_back(std::move(minibatch));
    }
  }
  return out;
}

}  // namespace troupe::algorithms
