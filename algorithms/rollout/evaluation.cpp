#include "algorithms/rollout/evaluation.h"

#include <algorithm>
#include <limits>

#include "algorithms/training/estimators.h"
#include "algorithms/training/weight_sync.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

// The sample ids of held-out prompts start here. Those of the training count upwards from 0.
constexpr std::uint64_t first_prompt = (std::uint64_t{1} << 62) / max_eval_samples;

double mean_reward(const std::vector<protocol::RewardResult>& results) {
  double sum = 0, count = 0;
  for (const auto& result : results) {
    if (!result.reward) continue;
    sum += *result.reward;
    count += 1;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

void append(Metrics& metrics, const Metrics& more) {
  for (const auto& [name, value] : more) metrics.emplace_back("eval/" + name, value);
}

Metrics pass_metrics(const RolloutBatch& all, const HeldOutPrompts& held_out) {
  const auto samples = static_cast<std::size_t>(held_out.samples);
  const std::size_t prompts = all.rewards.size() / samples;
  std::vector<std::int64_t> passed(prompts);
  for (std::size_t n = 0; n < all.rewards.size(); ++n)
    passed[n / samples] += passes(all.rewards[n], held_out.pass_reward);
  Metrics metrics;
  for (const std::int64_t k : pass_ks(held_out.samples)) {
    double sum = 0;
    for (const std::int64_t count : passed) sum += pass_at_k(held_out.samples, count, k);
    metrics.emplace_back(cat("pass@", k), sum / static_cast<double>(prompts));
  }
  return metrics;
}

}  // namespace

PromptBatch eval_prompts(const std::vector<engine::data::PromptRow>& rows, std::size_t first,
                         std::size_t count) {
  PromptBatch prompts;
  for (std::size_t i = first; i < std::min(first + count, rows.size()); ++i) {
    prompts.examples.push_back(&rows[i]);
    prompts.ids.push_back(first_prompt + i);
  }
  return prompts;
}

RolloutOptions eval_rollout_options(const HeldOutPrompts& held_out) {
  RolloutOptions options;
  options.group = held_out.samples;
  options.ids_per_prompt = max_eval_samples;
  options.sampling = held_out.sampling;
  options.send_rows = held_out.send_rows;
  options.whole_groups = held_out.whole_groups;
  return options;
}

bool passes(const protocol::RewardResult& result, double pass_reward) {
  return result.reward && *result.reward >= pass_reward;
}

Metrics evaluation_metrics(const RolloutBatch& all, const HeldOutPrompts& held_out) {
  check(!all.rewards.empty() && all.rewards.size() == all.completions.size(),
        "evaluation_metrics: one reward per completion is needed");
  Metrics metrics{{"eval/reward", mean_reward(all.rewards)}};
  append(metrics, reward_part_metrics(all));
  append(metrics, pass_metrics(all, held_out));
  append(metrics, length_metrics(all));
  return metrics;
}

Task<Metrics> evaluate_prompts(Sampling from, const HeldOutPrompts& held_out) {
  const auto options = eval_rollout_options(held_out);
  const auto at_once = static_cast<std::size_t>(
      std::max<std::int64_t>(1, held_out.samples_at_once / held_out.samples));
  Cluster& c = from.cluster;
  const ActivityScope evaluating(c.journal, Activity::evaluation);
  RolloutBatch all;
  for (std::size_t first = 0; first < held_out.rows.size(); first += at_once) {
    c.journal.progress("evaluating held-out prompts", static_cast<std::int64_t>(first),
                       std::ssize(held_out.rows));
    const auto prompts = eval_prompts(held_out.rows, first, at_once);
    auto sampling = sample_rollouts(from, prompts, options, false);
    auto samples = co_await sampling;
    std::ranges::move(samples.completions, std::back_inserter(all.completions));
    std::ranges::move(samples.rewards, std::back_inserter(all.rewards));
  }
  co_return evaluation_metrics(all, held_out);
}

Task<void> evaluate_initial(Cluster& c, const HeldOutPrompts& held_out, std::int64_t done) {
  if (done > 0 || held_out.rows.empty()) co_return;
  Metrics metrics;
  co_await add_evaluation(c, held_out, 0, metrics);
  c.journal.record(0, metrics);
}

Task<void> add_evaluation(Cluster& c, const HeldOutPrompts& held_out, std::int64_t batches,
                          Metrics& metrics) {
  co_await sync_weights(c, batches);
  auto evaluation = evaluate_prompts(Sampling(c), held_out);
  const auto eval = co_await evaluation;
  metrics.insert(metrics.end(), eval.begin(), eval.end());
}

}  // namespace troupe::algorithms
