// Proximal Policy Optimization with a critic (Schulman et al. 2017, arXiv:1707.06347; for language
// models Ziegler et al. 2019, arXiv:1909.08593). A rollout step samples answers, computes rewards
// of the answers or of their steps, evaluates every state with the critic, and computes advantages.
// One step is one optimizer update of policy and critic, concurrently; epochs * minibatches updates
// share the samples of a rollout step.
#include "algorithms/ppo.h"

#include <optional>

#include "algorithms/rollout/ppo_minibatches.h"
#include "algorithms/rollout/sampling.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

// Settings of one rollout step's updates. During its warmup only the critic is trained.
struct PpoUpdates {
  Cluster& c;
  Plan& plan;
  const CriticPlan& critic;
  const PpoConfig& config;
  const HeldOutPrompts& held_out;
  PpoLoss policy_loss;
  bool warmup;
  std::optional<double> epoch;
  std::int64_t batches;  ///< trained before this rollout step
};

PpoLoss policy_loss(const PpoConfig& config) {
  PpoLoss loss = config.policy;
  loss.kl_coef = config.kl_place == KlPlace::loss ? config.kl_coef : 0;
  loss.kl = config.kl;
  loss.kl_clamp = config.kl_clamp;
  loss.temperature = config.sampling.temperature;
  return loss;
}

// The variance (n - 1, as in TRL) of the mean ratio over the updates of a rollout step.
struct RatioVariance {
  double count = 0, mean = 0, squares = 0;
  void add(std::optional<double> ratio) {
    if (!ratio) return;
    count += 1;
    const double delta = *ratio - mean;
    mean += delta / count;
    squares += delta * (*ratio - mean);
  }
  void report(Metrics& metrics) const {
    if (count > 1) metrics.emplace_back("val/ratio_var", squares / (count - 1));
  }
};

// One update of critic and policy, at the same time. Adds the metrics of both.
Task<void> train(const PpoUpdates& u, std::int64_t step, PpoMinibatch minibatch,
                 RatioVariance& ratios, Metrics& metrics) {
  const double rate = u.critic.learning_rate * u.critic.schedule(step - 1);
  const auto sizes = sizes_of(minibatch.critic);
  u.c.journal.passed({PassModel::critic, true, sizes});
  if (!u.warmup) u.c.journal.passed({PassModel::policy, true, sizes});
  protocol::TrainStep for_critic{std::move(minibatch.critic), spec_of(u.config.value), rate};
  auto critic_reply = u.c.critic->ask(std::move(for_critic), u.c.timeout);
  std::optional<actors::Reply<protocol::StepStats>> policy_reply;
  if (!u.warmup) {
    protocol::TrainStep for_policy{std::move(minibatch.policy), spec_of(u.policy_loss),
                                   u.plan.rate(step)};
    policy_reply = u.c.policy.ask(std::move(for_policy), u.c.timeout);
  }
  const auto critic = co_await critic_reply.get();
  protocol::StepStats policy = critic;
  if (policy_reply) policy = co_await policy_reply->get();
  metrics = metrics_of(policy);
  if (policy_reply) metrics.insert(metrics.end(), critic.metrics.begin(), critic.metrics.end());
  metrics.emplace_back("critic/vf_loss", critic.loss);
  metrics.emplace_back("critic/grad_norm", critic.grad_norm);
  metrics.emplace_back("critic/lr", critic.learning_rate);
  ratios.add(policy.ratio);
  ratios.report(metrics);
}

// The updates of a rollout step after step `before`, and an evaluation after the last of them if
// one is due. Returns the number of the last step.
Task<std::int64_t> ppo_updates(const PpoUpdates& u, const RolloutBatch& samples,
                               std::int64_t before, std::int64_t rollout_step) {
  std::int64_t step = before;
  RatioVariance ratios;
  auto batches = minibatches(samples, u.config, static_cast<std::uint64_t>(rollout_step));
  for (auto& minibatch : batches) {
    if (step == u.plan.steps) break;
    ++step;
    Metrics metrics;
    u.c.journal.processed(processed_of(minibatch.critic, u.epoch));
    co_await train(u, step, std::move(minibatch), ratios, metrics);
    metrics.insert(metrics.end(), samples.metrics.begin(), samples.metrics.end());
    const bool last = &minibatch == &batches.back() || step == u.plan.steps;
    if (last && u.held_out.due(before, step, u.plan.steps)) {
      co_await add_evaluation(u.c, u.held_out, u.batches + 1, metrics);
    }
    record_step(u.c, u.plan, step, metrics);
  }
  co_return step;
}

// Samples of one rollout step with advantages and returns.
Task<RolloutBatch> sample_experience(Cluster& c, const PromptBatch& prompts,
                                     const PpoConfig& config) {
  auto sampling = sample_rollouts(c, prompts, config, config.kl_coef != 0);
  auto samples = co_await sampling;
  const ActivityScope preparing(c.journal, Activity::advantage);
  apply_rewards(samples);
  Metrics mismatch;
  if (config.recompute_old) {
    co_await recompute_old_logp(c, samples.batch, config.sampling.temperature);
    mismatch = mismatch_metrics(samples.batch);
    samples.batch.rollout_logp.clear();  // PpoLoss has no correction that would read it
  }
  c.journal.passed({PassModel::critic, false, sizes_of(samples.batch)});
  protocol::Score message{critic_inputs(samples.batch), engine::loss::ReadAt::token, {}};
  auto reply = c.critic->ask(std::move(message), c.timeout);
  const auto values = co_await reply.get();
  compute_advantages(samples, values, config.kl_coef, config);
  samples.metrics.insert(samples.metrics.end(), mismatch.begin(), mismatch.end());
  co_return samples;
}

}  // namespace

Result<> resume(PpoConfig& config, const Json& state) {
  if (config.control.schedule != KlSchedule::adaptive || state.is_null()) return {};
  const auto saved = fields_from_json<PpoState>(state, "algorithm state");
  RETURN_IF_ERROR(saved);
  config.kl_coef = saved->kl_coef;
  return {};
}

Task<void> ppo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan,
               CriticPlan critic, PpoConfig config, HeldOutPrompts held_out) {
  const std::int64_t updates_per_rollout = std::int64_t{config.epochs} * config.minibatches;
  co_await evaluate_initial(c, held_out, plan.done);
  std::int64_t batches = plan.batches_done;
  for (std::int64_t step = plan.done; step < plan.steps;) {
    const auto prompts = data.next();
    if (!prompts) break;
    const std::int64_t before = step, rollout_step = before / updates_per_rollout;
    co_await sync_weights(c, batches);
    c.journal.status(cat("step ", step + 1, ": generating ",
                         prompts->ids.size() * static_cast<std::size_t>(config.group), " samples"));
    const auto samples = co_await sample_experience(c, *prompts, config);
    log_completions(c.journal, step + 1, samples, config.logged_completions);

    const PpoUpdates updates{c,
                             plan,
                             critic,
                             config,
                             held_out,
                             policy_loss(config),
                             rollout_step < config.critic_warmup,
                             data.epoch(),
                             batches++};
    step = co_await ppo_updates(updates, samples, before, rollout_step);
    const auto count = static_cast<double>(samples.completions.size());
    config.kl_coef = config.control.next(config.kl_coef, mean_kl(samples.batch, config), count);
    protocol::RunState state{.data = data.state(),
                             .algorithm = fields_to_json(PpoState{config.kl_coef}),
                             .batches = batches};
    const bool more = co_await end_step(c, plan, before, step, std::move(state));
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
