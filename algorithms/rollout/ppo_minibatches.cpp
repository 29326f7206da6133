#include "algorithms/rollout/ppo_minibatches.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/random.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;
using Numbers = std::vector<double>;

std::size_t at(const Experience& b, std::size_t sequence) {
  return static_cast<std::size_t>(b.offsets[sequence]);
}

// [T] KL estimates of the trained tokens, 0 elsewhere.
Numbers token_kl(const Experience& b, const PpoConfig& config) {
  Numbers apart(b.tokens.size(), 0);
  if (b.reference_logp.empty()) return apart;
  for (std::size_t t = 0; t < apart.size(); ++t)
    if (b.mask[t] != 0)
      apart[t] = static_cast<double>(b.old_logp[t]) - static_cast<double>(b.reference_logp[t]);
  return kl(config.kl, engine::loss::Expr(apart), config.kl_clamp).values();
}

// What is given for each token, and behind each sequence's end.
struct Rewards {
  Numbers tokens;               ///< [T]
  std::vector<Beyond> beyond;   ///< [N]
  Numbers scores;               ///< [N] all that was given for a sample but the KL
  std::int64_t lost_steps = 0;  ///< process rewards without a trained token
};

// Verdict n, placed on the tokens of its sample.
void place(Rewards& rewards, const Sampled& sampled, std::size_t n, const PpoConfig& config) {
  const Experience& b = sampled.batch;
  const auto& verdict = sampled.verdicts[n];
  const auto begin = at(b, n), length = at(b, n + 1) - begin, answer = sampled.drawn[n].ids.size();
  const auto mask = std::span(b.mask).subspan(begin, length);
  const auto given = std::span(rewards.tokens).subspan(begin, length);
  const auto last = last_trained(mask);
  if (last < 0 || !verdict.reward) return;
  Numbers worth;
  std::vector<std::int32_t> ends;
  for (const auto& step : verdict.steps)
    worth.push_back(step.reward - config.step_baseline),
        ends.push_back(static_cast<std::int32_t>(length - answer) + step.end);
  worth = credited(worth, config.credit, config.credit_temperature);
  rewards.lost_steps += add_steps(given, mask, ends, worth);
  const bool ended = !truncated(sampled.drawn[n]);
  const double score = shaped(*verdict.reward - verdict.from_steps, ended, config.score);
  rewards.scores[n] = score + std::accumulate(worth.begin(), worth.end(), 0.0);
  const bool room = ended && answer < static_cast<std::size_t>(config.sampling.max_new_tokens);
  if (config.place == ScorePlace::after_end && room)
    rewards.beyond[n] = {.reward = score, .ends = true};
  else
    given[static_cast<std::size_t>(last)] += score;
}

// Whitened together with what is given behind the ends; the mean stays.
void whiten(Rewards& rewards, const Experience& b, Variance variance) {
  Numbers all = rewards.tokens;
  std::vector<float> mask = b.mask;
  for (const Beyond& beyond : rewards.beyond)
    all.push_back(beyond.reward), mask.push_back(beyond.ends ? 1.0f : 0.0f);
  const auto white = whitened(all, mask, {.variance = variance, .shift_mean = false});
  for (std::size_t t = 0; t < b.tokens.size(); ++t) rewards.tokens[t] = white[t];
  for (std::size_t n = 0; n < rewards.beyond.size(); ++n)
    rewards.beyond[n].reward = white[b.tokens.size() + n];
}

struct Summary {
  double mean = 0, least = 0, greatest = 0, variance = 0;
};

// Of the elements whose mask is not 0 (an empty mask: all).
Summary summary(std::span<const double> x, std::span<const float> mask) {
  Summary s;
  double count = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!mask.empty() && mask[i] == 0) continue;
    s.least = count == 0 ? x[i] : std::min(s.least, x[i]);
    s.greatest = count == 0 ? x[i] : std::max(s.greatest, x[i]);
    count += 1, sum += x[i], squares += x[i] * x[i];
  }
  if (count == 0) return s;
  s.mean = sum / count;
  s.variance = std::max(0.0, squares / count - s.mean * s.mean);
  return s;
}

void add(Metrics& metrics, const std::string& name, const Summary& s) {
  metrics.emplace_back(name + "/mean", s.mean);
  metrics.emplace_back(name + "/max", s.greatest);
  metrics.emplace_back(name + "/min", s.least);
}

double sum_of(const Numbers& x) {
  return std::accumulate(x.begin(), x.end(), 0.0);
}

// [T] the value of the state that each token was chosen in: what was judged at the token before it.
Numbers values_before(const Experience& b, const std::vector<float>& judged) {
  Numbers values(b.tokens.size(), 0);
  for (std::size_t n = 0; n + 1 < b.offsets.size(); ++n)
    for (std::size_t t = at(b, n) + 1; t < at(b, n + 1); ++t)
      if (b.mask[t] != 0) values[t] = static_cast<double>(judged[t - 1]);
  return values;
}

// Advantages and returns of the whole round, [T]; whitened where that is asked for.
Gae estimate(Rewards& rewards, const Numbers& values, const std::vector<float>& judged,
             const Sampled& sampled, const PpoConfig& config) {
  const Experience& b = sampled.batch;
  Gae all;
  for (std::size_t n = 0; n < sampled.drawn.size(); ++n) {
    const auto begin = at(b, n), length = at(b, n + 1) - begin;
    const auto mask = std::span(b.mask).subspan(begin, length);
    Beyond& beyond = rewards.beyond[n];
    const bool reaches_on =
        beyond.ends || (config.truncated == Bootstrap::value && truncated(sampled.drawn[n]));
    if (const auto last = last_trained(mask); reaches_on && last >= 0)
      beyond.value = static_cast<double>(judged[begin + static_cast<std::size_t>(last)]);
    const auto one = gae(std::span(rewards.tokens).subspan(begin, length),
                         std::span(values).subspan(begin, length), mask, config.gae, beyond);
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

// Per sample and over the round, as TRL names them.
Metrics objective_metrics(const Sampled& sampled, const Rewards& rewards, const Numbers& apart,
                          double kl_coef, const PpoConfig& config) {
  const Experience& b = sampled.batch;
  const auto samples = static_cast<double>(sampled.drawn.size());
  double surprise = 0, ended = 0;
  for (std::size_t t = 0; t < b.tokens.size(); ++t)
    surprise -= b.mask[t] != 0 ? static_cast<double>(b.old_logp[t]) : 0;
  for (const auto& drawn : sampled.drawn) ended += truncated(drawn) ? 0 : 1;
  const double per_sample_kl = sum_of(apart) / samples, scores = sum_of(rewards.scores) / samples;
  const double paid = config.kl_place == KlPlace::reward ? kl_coef * per_sample_kl : 0;
  return {{"objective/kl", per_sample_kl},
          {"objective/kl_coef", kl_coef},
          {"objective/entropy", surprise / samples},
          {"objective/non_score_reward", -paid},
          {"objective/rlhf_reward", scores - paid},
          {"objective/scores", scores},
          {"val/num_eos_tokens", ended}};
}

Metrics verdict_metrics(const Sampled& sampled, const Rewards& rewards) {
  Numbers given;
  double steps = 0;
  for (const auto& verdict : sampled.verdicts) {
    if (verdict.reward) given.push_back(*verdict.reward);
    steps += static_cast<double>(verdict.steps.size());
  }
  const Summary s = summary(given, {});
  const auto samples = static_cast<double>(sampled.verdicts.size()),
             count = static_cast<double>(given.size());
  const double deviation = count > 1 ? std::sqrt(s.variance * count / (count - 1)) : 0;
  Metrics metrics{
      {"reward", s.mean}, {"reward_std", deviation}, {"rewards/failed", samples - count}};
  if (steps > 0) {
    metrics.emplace_back("rewards/steps_mean_count", steps / samples);
    metrics.emplace_back("rewards/steps_lost", static_cast<double>(rewards.lost_steps));
  }
  return metrics;
}

// What the critic knew beforehand, as verl names it.
Metrics critic_metrics(const Experience& b, const Rewards& rewards, const Numbers& values,
                       const Gae& found) {
  Metrics metrics;
  add(metrics, "critic/score", summary(rewards.scores, {}));
  add(metrics, "critic/values", summary(values, b.mask));
  add(metrics, "critic/returns", summary(found.returns, b.mask));
  add(metrics, "critic/advantages", summary(found.advantages, b.mask));
  Numbers missed(values.size());
  for (std::size_t t = 0; t < values.size(); ++t) missed[t] = found.returns[t] - values[t];
  const double spread = summary(found.returns, b.mask).variance;
  if (spread > 0)
    metrics.emplace_back("critic/vf_explained_var", 1 - summary(missed, b.mask).variance / spread);
  return metrics;
}

// 0..count-1, dealt anew for each epoch of each round.
std::vector<std::int32_t> dealt(std::int32_t count, std::uint64_t seed, std::uint64_t deal) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[uniform_below(i + 1, seed, deal, i)]);
  return order;
}

}  // namespace

Experience states_of(const Experience& batch) {
  Experience states = batch;
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

void settle(Sampled& sampled, const std::vector<float>& judged, double kl_coef,
            const PpoConfig& config) {
  Experience& b = sampled.batch;
  check(judged.size() == b.tokens.size(), "ppo: one value per token is needed");
  check(sampled.verdicts.size() == sampled.drawn.size(),
        "ppo: another number of verdicts than of samples");
  const Numbers apart = token_kl(b, config), values = values_before(b, judged);
  Rewards rewards{Numbers(b.tokens.size(), 0), std::vector<Beyond>(sampled.drawn.size()),
                  Numbers(sampled.drawn.size(), 0)};
  if (config.kl_place == KlPlace::reward)
    for (std::size_t t = 0; t < apart.size(); ++t) rewards.tokens[t] = -kl_coef * apart[t];
  for (std::size_t n = 0; n < sampled.drawn.size(); ++n) place(rewards, sampled, n, config);
  if (config.whiten_rewards) whiten(rewards, b, config.variance);
  const Gae found = estimate(rewards, values, judged, sampled, config);
  b.value = column(values), b.advantage = column(found.advantages),
  b.returns = column(found.returns);
  sampled.metrics = objective_metrics(sampled, rewards, apart, kl_coef, config);
  for (const auto& more : {verdict_metrics(sampled, rewards), part_metrics(sampled),
                           critic_metrics(b, rewards, values, found), length_metrics(sampled)})
    sampled.metrics.insert(sampled.metrics.end(), more.begin(), more.end());
}

std::vector<PpoUpdate> updates_of(const Sampled& sampled, const PpoConfig& config,
                                  std::uint64_t round) {
  const double tokens = trained_tokens(sampled.batch), longest = config.sampling.max_new_tokens;
  const std::int32_t samples = sampled.batch.sequences();
  std::vector<PpoUpdate> updates;
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    const auto deal =
        round * static_cast<std::uint64_t>(config.epochs) + static_cast<std::uint64_t>(epoch);
    const auto order = dealt(samples, config.sampling.seed, deal);
    for (int part = 0; part < config.minibatches; ++part) {
      const auto begin = order.begin() + samples * part / config.minibatches,
                 end = order.begin() + samples * (part + 1) / config.minibatches;
      if (begin == end) continue;
      PpoUpdate update{sampled.batch.select({begin, end}), {}};
      update.critic = update.policy;
      set_constants(update.policy, config.policy.aggregation, tokens / config.minibatches, longest);
      set_constants(update.critic, Aggregation::token_local, 0, longest);
      for (auto* column : {&update.policy.value, &update.policy.returns}) column->clear();
      for (auto* column :
           {&update.critic.old_logp, &update.critic.reference_logp, &update.critic.advantage})
        column->clear();
      updates.push_back(std::move(update));
    }
  }
  return updates;
}

}  // namespace troupe::algorithms
