// Group Relative Policy Optimization (Shao et al. 2024, arXiv:2402.03300) and its relatives: sample
// a group of answers to each prompt, judge them, prefer those above what was to be expected. One
// step is one optimizer update; epochs * minibatches updates share one round of samples.
#include "algorithms/grpo.h"

#include <algorithm>

#include "algorithms/health.h"
#include "algorithms/rollout/dynamic_sampling.h"
#include "algorithms/rollout/grpo_minibatches.h"
#include "algorithms/rollout/sampling.h"
#include "algorithms/weight_sync.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

// consumes: prompts · asks: rollouts and verifier · produces: the reward of the greedy answer to
// each prompt (ReMax). Its sample id is the prompt's with the highest bit set, which no other
// sample has.
Task<std::vector<double>> greedy_rewards(Cluster& c, PromptBatch prompts,
                                         const GrpoConfig& config) {
  DrawConfig greedy = config;
  greedy.group = 1, greedy.sampling.greedy = true;
  for (auto& id : prompts.ids) id |= std::uint64_t{1} << 63;
  auto sampling = sample_and_judge(c, prompts, greedy, false);
  const auto sampled = co_await sampling;
  co_return shaped_rewards(sampled.drawn, sampled.verdicts, config);
}

// consumes: a round as it was drawn · asks: the policy for its own log-probabilities, where they
// are to be recomputed; the rollouts for greedy answers, where they are the baseline · produces:
// the round with advantages and metrics
Task<void> finish(Cluster& c, Gathered& round, const GrpoConfig& config) {
  auto& sampled = round.sampled;
  if (config.recompute_old) {
    auto asking = recompute_old(c, sampled.batch, config.loss.temperature);
    co_await asking;
  }
  std::vector<double> baselines;
  if (config.advantage.estimator == Estimator::remax) {
    auto drawing = greedy_rewards(c, round.prompts, config);
    baselines = co_await drawing;
  }
  settle(sampled, std::move(sampled.verdicts), config, std::move(baselines));
  if (config.recompute_old && !config.loss.correction.any()) {
    const auto apart = mismatch_metrics(sampled.batch);
    sampled.metrics.insert(sampled.metrics.end(), apart.begin(), apart.end());
  }
  if (!config.dynamic.on) co_return;
  const auto kept = static_cast<double>(round.prompts.ids.size());
  sampled.metrics.emplace_back("dynamic_filtering_pass_rate",
                               kept / static_cast<double>(round.groups_drawn));
  sampled.metrics.emplace_back("filter_groups/refills", static_cast<double>(round.refills));
  sampled.metrics.emplace_back("filter_groups/reward",
                               round.reward_sum / static_cast<double>(round.rewards));
}

// What the loss of the next update is to know of the updates before it.
GrpoLoss loss_of(const GrpoConfig& config, std::uint64_t version) {
  GrpoLoss loss = config.loss;
  if (config.entropy.adaptive()) loss.entropy_coef = config.entropy_bonus;
  if (loss.proximal != Proximal::given) loss.version = static_cast<double>(version);
  return loss;
}

// The entropy of an update says how strong the bonus of the next is.
void control_entropy(GrpoConfig& config, Metrics& metrics) {
  if (!config.entropy.adaptive()) return;
  metrics.emplace_back("entropy_coef", config.entropy_bonus);
  const auto found = std::ranges::find(metrics, "entropy", &Metrics::value_type::first);
  if (found == metrics.end()) return;
  config.loss.entropy_coef = config.entropy.next(config.loss.entropy_coef, found->second);
  config.entropy_bonus = config.entropy.bonus(config.loss.entropy_coef, found->second);
}

Json place_of(const Json& data, const GrpoConfig& config) {
  Json place = data;
  if (config.entropy.adaptive())
    place.set("entropy_coef", config.loss.entropy_coef),
        place.set("entropy_bonus", config.entropy_bonus);
  return place;
}

}  // namespace

Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan,
                GrpoConfig config) {
  Watch watch;
  Json place;
  for (std::int64_t step = plan.done, before = step; step < plan.steps;) {
    auto refreshing = refresh_rollouts(c);
    co_await refreshing;
    auto gathering = gather(c, data, config, step > 0);
    auto round = co_await gathering;
    if (!round) {
      auto ending = end_early(c, plan, before, step, place);
      co_await ending;
      break;
    }
    auto finishing = finish(c, *round, config);
    co_await finishing;
    const auto& sampled = round->sampled;
    show(c.journal, step + 1, round->prompts, sampled, config.shown);

    before = step;
    std::uint64_t version =
        sampled.batch.version.empty() ? 0 : std::ranges::max(sampled.batch.version);
    auto updates = updates_of(sampled, config);
    for (auto& update : updates) {
      if (step == plan.steps) break;
      ++step;
      protocol::TrainStep message{std::move(update), spec_of(loss_of(config, version)),
                                  plan.rate(step)};
      auto training = c.policy.ask(std::move(message), c.patience);
      const auto stats = co_await training.get();
      version = stats.version;
      auto metrics = metrics_of(stats);
      control_entropy(config, metrics);
      metrics.insert(metrics.end(), sampled.metrics.begin(), sampled.metrics.end());
      c.journal.record(step, metrics);
      watch.look(step, metrics);
    }
    place = place_of(data.state(), config);
    auto ending = end_step(c, plan, before, step, place);
    const bool more = co_await ending;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
