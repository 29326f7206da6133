// Proximal Policy Optimization with a critic (Schulman et al. 2017, arXiv:1707.06347; for language
// models Ziegler et al. 2019, arXiv:1909.08593): sample answers, judge them or their steps, ask the
// critic what each state was worth, prefer tokens that did better. One step is one optimizer update
// of policy and critic, at the same time; epochs * minibatches updates share one round of samples.
#include "algorithms/ppo.h"

#include <optional>

#include "algorithms/rollout/ppo_minibatches.h"
#include "algorithms/rollout/sampling.h"
#include "algorithms/weight_sync.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

using engine::loss::ReadAt;

// One optimizer update of each; in the rounds of the critic's warm-up of the critic alone.
struct Learners {
  Cluster& c;
  const Plan& plan;
  const CriticPlan& critic;
  const PpoConfig& config;
  PpoLoss policy_loss;
  bool warming_up;
};

PpoLoss policy_loss(const PpoConfig& config) {
  PpoLoss loss = config.policy;
  loss.kl_coef = config.kl_place == KlPlace::loss ? config.kl_coef : 0;
  loss.kl = config.kl, loss.kl_clamp = config.kl_clamp,
  loss.temperature = config.sampling.temperature;
  return loss;
}

// The variance over a round's updates of the mean ratio, n - 1, as TRL has it.
struct Ratios {
  double count = 0, mean = 0, squares = 0;
  void take(Metrics& metrics) {
    for (const auto& [name, value] : metrics) {
      if (name != "val/ratio") continue;
      count += 1;
      const double away = value - mean;
      mean += away / count, squares += away * (value - mean);
    }
    if (count > 1) metrics.emplace_back("val/ratio_var", squares / (count - 1));
  }
};

// consumes: one update · asks: critic and policy at once · produces: what is to be written down of
// the step
Task<Metrics> learn(const Learners& l, std::int64_t step, PpoUpdate update) {
  const double rate = l.critic.learning_rate * l.critic.schedule(step - 1);
  protocol::TrainStep for_critic{std::move(update.critic), spec_of(l.config.value), rate};
  auto judging_better = l.c.critic->ask(std::move(for_critic), l.c.patience);
  std::optional<actors::Reply<protocol::StepStats>> acting_better;
  if (!l.warming_up) {
    protocol::TrainStep for_policy{std::move(update.policy), spec_of(l.policy_loss),
                                   l.plan.rate(step)};
    acting_better = l.c.policy.ask(std::move(for_policy), l.c.patience);
  }
  const auto critic = co_await judging_better.get();
  protocol::StepStats policy = critic;
  if (acting_better) policy = co_await acting_better->get();
  Metrics metrics = metrics_of(policy);
  if (acting_better) metrics.insert(metrics.end(), critic.metrics.begin(), critic.metrics.end());
  metrics.emplace_back("critic/vf_loss", critic.loss);
  metrics.emplace_back("critic/grad_norm", critic.grad_norm);
  metrics.emplace_back("critic/lr", critic.learning_rate);
  co_return metrics;
}

// consumes: prompts · asks: rollouts, verifier and reference, then the critic · produces: samples
// with advantages and returns
Task<Sampled> experience(Cluster& c, const PromptBatch& prompts, const PpoConfig& config) {
  auto sampling = sample_and_judge(c, prompts, config, config.kl_coef != 0);
  auto sampled = co_await sampling;
  accept(sampled, std::move(sampled.verdicts));
  Metrics apart;
  if (config.recompute_old) {
    auto asking = recompute_old(c, sampled.batch, config.sampling.temperature);
    co_await asking;
    apart = mismatch_metrics(sampled.batch);
    sampled.batch.rollout_logp.clear();  // the loss has no correction that would read it
  }
  protocol::Score states{states_of(sampled.batch), ReadAt::token, {}};
  auto valuing = c.critic->ask(std::move(states), c.patience);
  const auto judged = co_await valuing.get();
  settle(sampled, judged, config.kl_coef, config);
  sampled.metrics.insert(sampled.metrics.end(), apart.begin(), apart.end());
  co_return sampled;
}

}  // namespace

Task<void> ppo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan,
               CriticPlan critic, PpoConfig config) {
  const std::int64_t a_round = std::int64_t{config.epochs} * config.minibatches;
  for (std::int64_t step = plan.done; step < plan.steps;) {
    const auto prompts = data.next();
    if (!prompts) break;
    const std::int64_t before = step, round = before / a_round;
    auto refreshing = refresh_rollouts(c);
    co_await refreshing;
    c.journal.status(cat("step ", step + 1, ": drawing ",
                         prompts->ids.size() * static_cast<std::size_t>(config.group), " samples"));
    auto gathering = experience(c, *prompts, config);
    const auto sampled = co_await gathering;
    show(c.journal, step + 1, *prompts, sampled, config.shown);

    const Learners learners{
        c, plan, critic, config, policy_loss(config), round < config.critic_warmup};
    Ratios ratios;
    auto updates = updates_of(sampled, config, static_cast<std::uint64_t>(round));
    for (auto& update : updates) {
      if (step == plan.steps) break;
      ++step;
      auto learning = learn(learners, step, std::move(update));
      auto metrics = co_await learning;
      ratios.take(metrics);
      metrics.insert(metrics.end(), sampled.metrics.begin(), sampled.metrics.end());
      c.journal.record(step, metrics);
    }
    const auto samples = static_cast<double>(sampled.drawn.size());
    config.kl_coef = config.control.next(config.kl_coef, mean_kl(sampled.batch, config), samples);
    Json place = data.state();
    place.set("kl_coef", config.kl_coef);
    auto ending = end_step(c, plan, before, step, place);
    const bool more = co_await ending;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
