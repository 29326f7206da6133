#include "algorithms/dynamic_sampling.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

// The compared reward: the total or one part; NaN where there is none.
double compared_reward(const protocol::RewardResult& result, const std::string& metric) {
  if (metric.empty()) return result.reward.value_or(std::nan(""));
  for (const auto& [rule, value] : result.parts)
    if (rule == metric) return value;
  return std::nan("");
}

std::string bounds_text(const DynamicSampling& options) {
  if (std::isinf(options.low()) && std::isinf(options.high())) return "";
  return cat(" with a mean above ", options.low(), " and below ", options.high());
}

std::string no_differences(const SamplingStats& stats, const GrpoConfig& config) {
  return cat("dynamic sampling: none of ", stats.groups, " groups of ", config.group,
             " samples, including ", stats.refills, " refills, has different rewards",
             bounds_text(config.dynamic), " (mean reward ",
             stats.reward_sum / static_cast<double>(stats.rewards), "): ");
}

bool needs_refill(const RolloutBatch& batch, const GrpoConfig& config, std::size_t wanted) {
  const bool allowed =
      config.dynamic.max_refills == 0 || batch.stats.refills < config.dynamic.max_refills;
  return config.dynamic.on && batch.prompts.ids.size() < wanted && allowed;
}

void count_samples(SamplingStats& stats, const RolloutBatch& sampled) {
  stats.groups += static_cast<std::int64_t>(sampled.prompts.ids.size());
  stats.tokens += sampled.batch.token_count();
  for (const auto& result : sampled.rewards) {
    if (!result.reward) continue;
    stats.reward_sum += *result.reward;
    ++stats.rewards;
  }
}

// Those of the samples `ids` that are not part of the batch.
void record_dropped(const Sampling& from, const std::vector<std::uint64_t>& ids,
                    const RolloutBatch& batch) {
  if (!from.ledger) return;
  std::set<std::uint64_t> kept;
  for (const auto& completion : batch.completions) kept.insert(completion.sample_id);
  std::vector<std::uint64_t> others;
  std::ranges::copy_if(ids, std::back_inserter(others),
                       [&](auto id) { return !kept.contains(id); });
  from.ledger->dropped(from.batch, others, "dynamic sampling: no differences, or a full batch");
}

}  // namespace

bool has_reward_differences(std::span<const protocol::RewardResult> group,
                            const DynamicSampling& options) {
  double sum = 0, count = 0, minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;
  for (const auto& result : group) {
    const double value = compared_reward(result, options.metric);
    if (std::isnan(value)) continue;
    sum += value;
    count += 1;
    minimum = std::min(minimum, value);
    maximum = std::max(maximum, value);
  }
  return minimum < maximum && sum / count > options.low() && sum / count < options.high();
}

void append_groups(RolloutBatch& batch, RolloutBatch more, const GrpoConfig& config,
                   std::size_t wanted) {
  count_samples(batch.stats, more);
  const auto group = static_cast<std::size_t>(config.group);
  std::vector<std::int32_t> kept;  // samples of `more`
  batch.prompts.owners.insert(batch.prompts.owners.end(), more.prompts.owners.begin(),
                              more.prompts.owners.end());
  for (std::size_t i = 0; i < more.prompts.ids.size() && batch.prompts.ids.size() < wanted; ++i) {
    const auto rewards = std::span(more.rewards).subspan(i * group, group);
    if (config.dynamic.on && !has_reward_differences(rewards, config.dynamic)) continue;
    batch.prompts.examples.push_back(more.prompts.examples[i]);
    batch.prompts.ids.push_back(more.prompts.ids[i]);
    std::ranges::move(rewards, std::back_inserter(batch.rewards));
    std::ranges::move(std::span(more.completions).subspan(i * group, group),
                      std::back_inserter(batch.completions));
    for (std::size_t n = i * group; n < (i + 1) * group; ++n)
      kept.push_back(static_cast<std::int32_t>(n));
  }
  if (std::cmp_equal(kept.size(), more.batch.sequences()) && batch.batch.sequences() == 0)
    batch.batch = std::move(more.batch);
  else
    batch.batch.append(more.batch.select(kept));
}

Task<std::optional<RolloutBatch>> next_batch(Sampling from,
                                             engine::data::Loader<engine::data::PromptRow>& data,
                                             const GrpoConfig& config, bool has_trained) {
  RolloutBatch batch;
  std::size_t wanted = 0;
  for (;;) {
    const auto prompts = data.next();
    if (!prompts) break;
    if (wanted == 0) wanted = prompts->ids.size();
    batch.data_state = data.state();
    batch.epoch = data.epoch();
    from.cluster.journal.status(cat(batch.stats.groups > 0 ? "refilling: " : "", "generating ",
                                    prompts->ids.size() * static_cast<std::size_t>(config.group),
                                    " samples"));
    auto sampling = sample_rollouts(from, *prompts, config, config.compares());
    auto samples = co_await sampling;
    const auto ids = samples.batch.sample_id;
    append_groups(batch, std::move(samples), config, wanted);
    record_dropped(from, ids, batch);
    if (!needs_refill(batch, config, wanted)) break;
    ++batch.stats.refills;
  }
  if (wanted == 0) co_return std::nullopt;
  const std::size_t groups = batch.prompts.ids.size();
  if (groups == 0 && !has_trained)
    throw Failure({Errc::bad_input,
                   cat(no_differences(batch.stats, config),
                       "no group has a gradient. Check whether the prompts are far too easy or "
                       "far too hard, or the reward is the same for every answer")});
  if (groups == 0) {
    log_warning(cat(no_differences(batch.stats, config), "nothing is left to learn, the run ends"));
    co_return std::nullopt;
  }
  if (groups < wanted)
    log_warning(cat("dynamic sampling: after ", batch.stats.refills, " refills only ", groups,
                    " of ", wanted, " groups have different rewards", bounds_text(config.dynamic),
                    "; training continues with these"));
  co_return batch;
}

}  // namespace troupe::algorithms
