#include "algorithms/grpo_minibatches.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {
namespace {

// Mean of the values that are not NaN; NaN of none.
double mean_of_numbers(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    count += 1;
  }
  return count > 0 ? sum / count : std::nan("");
}

// Metrics of the rewards before shaping.
Metrics reward_metrics(const RolloutBatch& samples, const Advantages& unscaled) {
  const auto groups = static_cast<double>(unscaled.groups);
  const bool any = unscaled.groups > 0;
  const double none = std::nan("");
  Metrics metrics{
      {"reward", any ? unscaled.mean : none},
      {"reward_std", any ? unscaled.group_std_dev : none},
      {"frac_reward_zero_std", any ? static_cast<double>(unscaled.flat) / groups : none},
      {"rewards/failed", static_cast<double>(unscaled.failed)}};
  const auto parts = reward_part_metrics(samples);
  metrics.insert(metrics.end(), parts.begin(), parts.end());
  return metrics;
}

// The samples that have a gradient. If the loss is only the advantage times a ratio, a sample of
// advantage 0 adds exact zeros: leaving it out saves a forward and a backward pass and changes no
// bit. The constants of the minibatch include it.
std::vector<std::int32_t> nonzero_advantage_samples(const engine::data::Experience& minibatch,
                                                    const GrpoConfig& config) {
  std::vector<std::int32_t> kept;
  const bool needs_all = !config.loss.advantage_is_all() || config.entropy.adaptive();
  for (std::int32_t n = 0; n < minibatch.sequences(); ++n) {
    bool nonzero = needs_all;
    const auto begin = static_cast<std::size_t>(minibatch.offsets[static_cast<std::size_t>(n)]),
               end = static_cast<std::size_t>(minibatch.offsets[static_cast<std::size_t>(n) + 1]);
    for (std::size_t t = begin; t < end && !nonzero; ++t)
      nonzero = minibatch.mask[t] != 0 && minibatch.advantage[t] != 0;
    if (nonzero) kept.push_back(n);
  }
  return kept;
}

// The reward parts that are scaled one by one; NaN where a sample has none.
std::vector<std::vector<double>> reward_parts(const RolloutBatch& samples,
                                              const AdvantageConfig& config) {
  std::vector<std::vector<double>> parts_KN;
  for (const auto& [wanted, weight] : config.parts) {
    parts_KN.emplace_back();
    for (const auto& result : samples.rewards) {
      parts_KN.back().push_back(std::nan(""));
      for (const auto& [rule, value] : result.parts)
        if (rule == wanted) parts_KN.back().back() = value;
    }
  }
  return parts_KN;
}

// Sequences of each update: all epochs, in whole groups.
std::vector<std::pair<std::int32_t, std::int32_t>> minibatch_ranges(const RolloutBatch& samples,
                                                                    const GrpoConfig& config) {
  const std::int32_t groups = samples.batch.sequences() / config.group;
  std::vector<std::pair<std::int32_t, std::int32_t>> out;
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    for (int part = 0; part < config.minibatches; ++part) {
      const std::int32_t begin = groups * part / config.minibatches,
                         end = groups * (part + 1) / config.minibatches;
      if (begin < end) out.emplace_back(begin * config.group, end * config.group);
    }
  }
  return out;
}

void add_kl_metrics(RolloutBatch& samples, const GrpoConfig& config) {
  if (config.advantage.reward_beta == 0) return;
  const auto kl =
      token_kl(samples.batch, config.advantage.reward_kl, config.advantage.reward_kl_clamp);
  const double sum = std::accumulate(kl.begin(), kl.end(), 0.0);
  samples.metrics.emplace_back("objective/kl", sum / static_cast<double>(samples.rewards.size()));
  const double tokens = trained_tokens(samples.batch);
  if (config.loss.beta == 0)
    samples.metrics.emplace_back("kl", tokens > 0 ? sum / tokens : std::nan(""));
}

}  // namespace

std::vector<double> shaped_rewards(const RolloutBatch& samples, const GrpoConfig& config) {
  std::vector<double> out;
  for (std::size_t n = 0; n < samples.rewards.size(); ++n) {
    const auto& completion = samples.completions[n];
    const double reward = samples.rewards[n].reward.value_or(std::nan(""));
    out.push_back(shaped_reward(reward, static_cast<double>(completion.ids.size()),
                                config.allowed_length(), truncated(completion), config.shaping));
    if (std::isnan(reward)) out.back() = reward;
  }
  return out;
}

void compute_advantages(RolloutBatch& samples, const GrpoConfig& config,
                        std::vector<double> baselines) {
  check(samples.rewards.size() % static_cast<std::size_t>(config.group) == 0,
        "grpo: not a whole number of groups");
  apply_rewards(samples);
  std::vector<double> rewards;
  for (const auto& result : samples.rewards)
    rewards.push_back(result.reward.value_or(std::nan("")));
  samples.metrics =
      reward_metrics(samples, group_advantages(rewards, config.group, GroupScale::none));
  RewardInputs inputs{shaped_rewards(samples, config), reward_parts(samples, config.advantage),
                      std::move(baselines)};
  if (config.advantage.estimator == Estimator::remax)
    samples.metrics.emplace_back("rewards/greedy/mean", mean_of_numbers(inputs.baselines));
  const Advantages advantages =
      estimate(samples.batch, config.group, std::move(inputs), config.advantage);
  samples.metrics.emplace_back("rewards/shaped/mean",
                               advantages.groups > 0 ? advantages.mean : std::nan(""));
  add_kl_metrics(samples, config);
  const auto lengths = length_metrics(samples);
  samples.metrics.insert(samples.metrics.end(), lengths.begin(), lengths.end());
}

std::vector<engine::data::Experience> minibatches(const RolloutBatch& samples,
                                                  const GrpoConfig& config) {
  const double tokens = trained_tokens(samples.batch);
  const double longest =
      config.constant_length > 0 ? config.constant_length : config.allowed_length();
  std::vector<engine::data::Experience> out;
  for (const auto& [begin, end] : minibatch_ranges(samples, config)) {
    auto minibatch = samples.batch.slice(begin, end);
    set_constants(minibatch, config.loss.aggregation, tokens, longest, config.counting);
    minibatch.token_version.clear();  // no loss reads it
    out.push_back(minibatch.select(nonzero_advantage_samples(minibatch, config)));
  }
  return out;
}

std::vector<Processed> minibatch_sizes(const RolloutBatch& samples, const GrpoConfig& config,
                                       std::optional<double> epoch) {
  const auto& offsets = samples.batch.offsets;
  std::vector<Processed> out;
  for (const auto& [begin, end] : minibatch_ranges(samples, config)) {
    const auto tokens =
        offsets[static_cast<std::size_t>(end)] - offsets[static_cast<std::size_t>(begin)];
    out.push_back({static_cast<double>(tokens), static_cast<double>(end - begin), epoch});
  }
  return out;
}

}  // namespace troupe::algorithms
