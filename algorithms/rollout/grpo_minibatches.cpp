#include "algorithms/rollout/grpo_minibatches.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/check.h"

namespace troupe::algorithms {
namespace {

double mean_of_numbers(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (const double value : values)
    if (!std::isnan(value)) sum += value, count += 1;
  return count > 0 ? sum / count : 0;
}

// Of the rewards as they were judged.
Metrics reward_metrics(const Sampled& sampled, const Advantages& found) {
  Metrics metrics{
      {"reward", found.mean},
      {"reward_std", found.group_deviation},
      {"frac_reward_zero_std",
       found.groups ? static_cast<double>(found.flat) / static_cast<double>(found.groups) : 0},
      {"rewards/failed", static_cast<double>(found.failed)}};
  const auto parts = part_metrics(sampled);
  metrics.insert(metrics.end(), parts.begin(), parts.end());
  return metrics;
}

// Where the loss is advantage times a ratio and nothing else, a sample of advantage 0 has neither
// loss nor gradient: adding its exact zeros costs a forward and a backward pass and changes no bit.
// The constants of the update were counted with it.
std::vector<std::int32_t> that_teach(const engine::data::Experience& update,
                                     const GrpoConfig& config) {
  std::vector<std::int32_t> kept;
  const bool advantage_is_all = config.loss.advantage_is_all() && !config.entropy.adaptive();
  for (std::int32_t n = 0; n < update.sequences(); ++n) {
    bool teaches = !advantage_is_all;
    for (auto t = update.offsets[static_cast<std::size_t>(n)];
         t < update.offsets[static_cast<std::size_t>(n) + 1] && !teaches; ++t)
      teaches = update.mask[static_cast<std::size_t>(t)] != 0 &&
                update.advantage[static_cast<std::size_t>(t)] != 0;
    if (teaches) kept.push_back(n);
  }
  return kept;
}

// [K][N] the reward parts that are scaled one by one; not-a-number where a sample has none.
std::vector<std::vector<double>> parts_of(const Sampled& sampled, const AdvantageConfig& config) {
  std::vector<std::vector<double>> out;
  for (const auto& [wanted, weight] : config.parts) {
    out.emplace_back();
    for (const auto& verdict : sampled.verdicts) {
      out.back().push_back(std::nan(""));
      for (const auto& [rule, value] : verdict.parts)
        if (rule == wanted) out.back().back() = value;
    }
  }
  return out;
}

}  // namespace

std::vector<double> shaped_rewards(const std::vector<protocol::Completion>& drawn,
                                   const std::vector<protocol::RewardResult>& verdicts,
                                   const GrpoConfig& config) {
  std::vector<double> out;
  for (std::size_t n = 0; n < verdicts.size(); ++n) {
    const double reward = verdicts[n].reward.value_or(std::nan(""));
    out.push_back(shaped_reward(reward, static_cast<double>(drawn[n].ids.size()),
                                config.allowed_length(), truncated(drawn[n]), config.shaping));
    if (std::isnan(reward)) out.back() = reward;
  }
  return out;
}

void settle(Sampled& sampled, std::vector<protocol::RewardResult> verdicts,
            const GrpoConfig& config, std::vector<double> baselines) {
  check(verdicts.size() % static_cast<std::size_t>(config.group) == 0,
        "grpo: not a whole number of groups");
  accept(sampled, std::move(verdicts));
  std::vector<double> judged;
  for (const auto& verdict : sampled.verdicts)
    judged.push_back(verdict.reward.value_or(std::nan("")));
  sampled.metrics =
      reward_metrics(sampled, group_advantages(judged, config.group, GroupScale::none));
  Judged known{shaped_rewards(sampled.drawn, sampled.verdicts, config),
               parts_of(sampled, config.advantage), std::move(baselines)};
  if (config.advantage.estimator == Estimator::remax)
    sampled.metrics.emplace_back("rewards/greedy/mean", mean_of_numbers(known.baselines));
  const Advantages found =
      estimate(sampled.batch, config.group, std::move(known), config.advantage);
  sampled.metrics.emplace_back("rewards/shaped/mean", found.mean);
  if (config.advantage.reward_beta != 0) {
    const auto kl =
        token_kl(sampled.batch, config.advantage.reward_kl, config.advantage.reward_kl_clamp);
    const double sum = std::accumulate(kl.begin(), kl.end(), 0.0);
    sampled.metrics.emplace_back("objective/kl", sum / static_cast<double>(judged.size()));
    if (config.loss.beta == 0)
      sampled.metrics.emplace_back("kl", sum / std::max(1.0, trained_tokens(sampled.batch)));
  }
  const auto lengths = length_metrics(sampled);
  sampled.metrics.insert(sampled.metrics.end(), lengths.begin(), lengths.end());
}

std::vector<engine::data::Experience> updates_of(const Sampled& sampled, const GrpoConfig& config) {
  const double tokens = trained_tokens(sampled.batch);
  const double longest = config.constant_length > 0
                             ? config.constant_length
                             : static_cast<double>(config.sampling.max_new_tokens);
  const std::int32_t groups = sampled.batch.sequences() / config.group;
  std::vector<engine::data::Experience> updates;
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    for (int part = 0; part < config.minibatches; ++part) {
      const std::int32_t begin = groups * part / config.minibatches,
                         end = groups * (part + 1) / config.minibatches;
      if (begin == end) continue;
      auto update = sampled.batch.slice(begin * config.group, end * config.group);
      set_constants(update, config.loss.aggregation, tokens, longest, config.counting);
      updates.push_back(update.select(that_teach(update, config)));
    }
  }
  return updates;
}

}  // namespace troupe::algorithms
