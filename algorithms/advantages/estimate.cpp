#include "algorithms/advantages/estimate.h"

#include <cmath>
#include <numeric>

#include "algorithms/advantages/token_rewards.h"
#include "engine/base/errors/check.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;

template <class T>
std::span<T> of_sequence(std::vector<T>& column, const Experience& b, std::size_t n) {
  return std::span(column).subspan(static_cast<std::size_t>(b.offsets[n]),
                                   static_cast<std::size_t>(b.offsets[n + 1] - b.offsets[n]));
}
template <class T>
std::span<const T> of_sequence(const std::vector<T>& column, const Experience& b, std::size_t n) {
  return std::span(column).subspan(static_cast<std::size_t>(b.offsets[n]),
                                   static_cast<std::size_t>(b.offsets[n + 1] - b.offsets[n]));
}

std::vector<double> lengths_of(const Experience& b) {
  std::vector<double> out;
  for (std::size_t n = 0; n + 1 < b.offsets.size(); ++n) {
    const auto mask = of_sequence(b.mask, b, n);
    out.push_back(std::accumulate(mask.begin(), mask.end(), 0.0));
  }
  return out;
}

// [T] the reward of each token: minus the KL's share, and the sample's reward at its last trained
// token.
std::vector<double> token_rewards(const Experience& b, const std::vector<double>& rewards,
                                  const std::vector<double>& kl, double beta) {
  std::vector<double> out(b.tokens.size(), 0);
  for (std::size_t t = 0; t < kl.size(); ++t) out[t] = -beta * kl[t];
  for (std::size_t n = 0; n < rewards.size(); ++n) {
    const auto last = last_trained(of_sequence(b.mask, b, n));
    if (last >= 0 && !std::isnan(rewards[n]))
      out[static_cast<std::size_t>(b.offsets[n]) + static_cast<std::size_t>(last)] += rewards[n];
  }
  return out;
}

Advantages by_sample(const Experience& b, int group, const RewardInputs& inputs,
                     const AdvantageConfig& config) {
  const auto& rewards = inputs.rewards;
  switch (config.estimator) {
    case Estimator::rloo:
      return leave_one_out(rewards, group);
    case Estimator::loo_scaled:
      return leave_one_out_scaled(rewards, group, config.eps);
    case Estimator::remax:
      return against_baseline(rewards, inputs.baselines, group);
    case Estimator::pass_at_k:
      return pass_at_k(rewards, group, config.eps);
    case Estimator::opo:
      return length_weighted_baseline(rewards, lengths_of(b), group);
    case Estimator::gpg:
      return group_policy_gradient(rewards, group);
    case Estimator::max_rl:
      return relative_to_mean(rewards, group);
    case Estimator::group:
    case Estimator::reinforce_pp:
      break;
  }
  if (config.parts.empty()) return group_advantages(rewards, group, config.scale, config.eps);
  std::vector<double> weights;
  for (const auto& [rule, weight] : config.parts) weights.push_back(weight);
  return normalise_then_sum(rewards, inputs.parts, weights, group, config.eps);
}

std::vector<double> normalised_samples(std::vector<double> values,
                                       const std::vector<double>& rewards, double eps) {
  for (std::size_t n = 0; n < values.size(); ++n)
    if (std::isnan(rewards[n])) values[n] = rewards[n];
  return normalised_over_batch(values, eps);
}

}  // namespace

std::vector<double> token_kl(const Experience& b, KlEstimator estimator, KlClamp clamp) {
  check(b.old_logp.size() == b.tokens.size() && b.reference_logp.size() == b.tokens.size(),
        "token_kl: log-probabilities are missing");
  std::vector<double> x(b.tokens.size(), 0);
  for (std::size_t t = 0; t < x.size(); ++t)
    if (b.mask[t] != 0)
      x[t] = static_cast<double>(b.old_logp[t]) - static_cast<double>(b.reference_logp[t]);
  return kl(estimator, engine::loss::Expr(x), clamp).values();
}

Advantages estimate(Experience& b, int group, RewardInputs inputs, const AdvantageConfig& config) {
  check(inputs.rewards.size() + 1 == b.offsets.size(), "estimate: one reward per sample is needed");
  const bool by_token = config.estimator == Estimator::reinforce_pp;
  std::vector<double> kl;
  if (config.reward_beta != 0) kl = token_kl(b, config.reward_kl, config.reward_kl_clamp);
  std::vector<double> tokens;  // [T]
  if (by_token) {
    const auto rewards = token_rewards(b, inputs.rewards, kl, config.reward_beta);
    for (std::size_t n = 0; n < inputs.rewards.size(); ++n) {
      const auto returns =
          returns_to_go(of_sequence(rewards, b, n), of_sequence(b.mask, b, n), config.gamma);
      tokens.insert(tokens.end(), returns.begin(), returns.end());
    }
  }
  for (std::size_t n = 0; n < inputs.rewards.size() && !kl.empty(); ++n) {
    const auto share = of_sequence(kl, b, n);
    inputs.rewards[n] -= config.reward_beta * std::accumulate(share.begin(), share.end(), 0.0);
  }
  Advantages found = by_sample(b, group, inputs, config);
  if (config.normalise == Normalise::samples)
    found.values = normalised_samples(found.values, inputs.rewards, config.eps);
  if (!by_token)
    for (std::size_t n = 0; n < found.values.size(); ++n)
      tokens.resize(static_cast<std::size_t>(b.offsets[n + 1]), found.values[n]);
  if (config.normalise == Normalise::tokens)
    tokens = whitened(tokens, b.mask, {.variance = config.variance});
  b.advantage.assign(tokens.begin(), tokens.end());
  return found;
}

}  // namespace troupe::algorithms
