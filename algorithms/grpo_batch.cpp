#include "algorithms/grpo_batch.h"

#include <limits>

#include "engine/base/check.h"

namespace troupe::algorithms {
namespace {

Metrics reward_metrics(const Sampled& sampled, const Advantages& found) {
  Metrics metrics{{"reward", found.mean},
                  {"reward_std", found.group_deviation},
                  {"frac_reward_zero_std", found.groups ? static_cast<double>(found.flat) / static_cast<double>(found.groups) : 0},
                  {"rewards/failed", static_cast<double>(found.failed)}};
  const auto parts = part_metrics(sampled);
  metrics.insert(metrics.end(), parts.begin(), parts.end());
  return metrics;
}

// Where the loss is advantage times a ratio and nothing else, a sample of advantage 0 has neither loss nor gradient: adding its exact
// zeros costs a forward and a backward pass and changes no bit. The constants of the update were counted with it.
std::vector<std::int32_t> that_teach(const engine::data::Experience& update, const GrpoLoss& loss) {
  std::vector<std::int32_t> kept;
  const bool advantage_is_all = loss.beta == 0 && loss.entropy_coef == 0;
  for (std::int32_t n = 0; n < update.sequences(); ++n) {
    bool teaches = !advantage_is_all;
    for (auto t = update.offsets[static_cast<std::size_t>(n)]; t < update.offsets[static_cast<std::size_t>(n) + 1] && !teaches; ++t)
      teaches = update.mask[static_cast<std::size_t>(t)] != 0 && update.advantage[static_cast<std::size_t>(t)] != 0;
    if (teaches) kept.push_back(n);
  }
  return kept;
}

}  // namespace

void settle(Sampled& sampled, std::vector<protocol::Verdict> verdicts, const GrpoConfig& config) {
  check(verdicts.size() % static_cast<std::size_t>(config.group) == 0, "grpo: not a whole number of groups");
  accept(sampled, std::move(verdicts));
  std::vector<double> rewards;
  for (const auto& verdict : sampled.verdicts) rewards.push_back(verdict.reward.value_or(std::numeric_limits<double>::quiet_NaN()));
  const Advantages found = group_advantages(rewards, config.group, config.scale);
  sampled.batch.advantage = per_token(found.values, sampled.batch.offsets);
  sampled.metrics = reward_metrics(sampled, found);
  const auto lengths = length_metrics(sampled);
  sampled.metrics.insert(sampled.metrics.end(), lengths.begin(), lengths.end());
}

std::vector<engine::data::Experience> updates_of(const Sampled& sampled, const GrpoConfig& config) {
  const double tokens = trained_tokens(sampled.batch);
  const double longest = config.constant_length > 0 ? config.constant_length : static_cast<double>(config.sampling.max_new_tokens);
  const std::int32_t groups = sampled.batch.sequences() / config.group;
  std::vector<engine::data::Experience> updates;
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    for (int part = 0; part < config.minibatches; ++part) {
      const std::int32_t begin = groups * part / config.minibatches, end = groups * (part + 1) / config.minibatches;
      if (begin == end) continue;
      auto update = sampled.batch.slice(begin * config.group, end * config.group);
      set_constants(update, config.loss.aggregation, tokens, longest);
      updates.push_back(update.select(that_teach(update, config.loss)));
    }
  }
  return updates;
}

}  // namespace troupe::algorithms
