// Proximal Policy Optimization with a critic (Schulman et al. 2017, arXiv:1707.06347; for language
// models Ziegler et al. 2019, arXiv:1909.08593). A rollout step samples answers, computes rewards
// of the answers or of their steps, evaluates every state with the critic, and computes advantages.
// One step is one optimizer update of policy and critic, concurrently; epochs * minibatches updates
// share the samples of a rollout step.
#include "algorithms/ppo.h"

#include <optional>

#include "algorithms/ppo_minibatches.h"
#include "algorithms/rollout/batches.h"
#include "algorithms/rollout/parity_sample.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

using Loader = engine::data::Loader<engine::data::PromptRow>;

// Settings of one rollout step's updates. During its warmup only the critic is trained.
struct PpoUpdates {
  Cluster& c;
  TrainingPlan& plan;
  const CriticPlan& critic;
  const PpoConfig& config;
  RolloutBatches& batches;
  PpoLoss policy_loss;
  bool warmup;
  std::optional<double> epoch;
};

PpoLoss policy_loss(const PpoConfig& config) {
  PpoLoss loss = config.policy;
  loss.kl_coef = config.kl_place == KlPlace::loss ? config.kl_coef : 0;
  loss.kl = config.kl;
  loss.kl_clamp = config.kl_clamp;
  loss.temperature = config.sampling.temperature;
  loss.masked = config.sampling.report_masks;
  return loss;
}

// The variance (n - 1, as in TRL) of the mean ratio over the updates of a rollout step, and the
// version that the next one starts from.
struct UpdateState {
  std::uint64_t version = 0;
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
Task<void> train(const PpoUpdates& u, std::int64_t step, PpoMinibatch minibatch, UpdateState& state,
                 Metrics& metrics) {
  const double rate = u.critic.learning_rate * u.critic.schedule(static_cast<double>(step - 1));
  const auto sizes = sizes_of(minibatch.critic);
  u.c.journal.passed({PassModel::critic, true, sizes});
  if (u.c.ledger) u.c.ledger->trained(minibatch.critic);
  if (!u.warmup) u.c.journal.passed({PassModel::policy, true, sizes});
  protocol::TrainStep for_critic{std::move(minibatch.critic), spec_of(u.config.value), rate};
  auto critic_reply = u.c.critic->ask(std::move(for_critic), u.c.timeout);
  std::optional<actors::Reply<protocol::StepStats>> policy_reply;
  if (!u.warmup) {
    PpoLoss loss = u.policy_loss;
    if (loss.proximal != Proximal::given) loss.version = static_cast<double>(state.version);
    protocol::TrainStep for_policy{std::move(minibatch.policy), spec_of(loss), u.plan.rate(step)};
    policy_reply = u.c.policy.ask(std::move(for_policy), u.c.timeout);
  }
  const auto critic = co_await critic_reply.get();
  protocol::StepStats policy = critic;
  if (policy_reply) {
    policy = co_await policy_reply->get();
    state.version = policy.version;
  }
  if (!policy.experts.layers.empty()) u.c.journal.loads(step, policy.experts);
  metrics = metrics_of(policy);
  if (policy_reply)
    for (const auto& [name, value] : critic.metrics) {
      const bool of_both = name == "loss_scale" || name == "skipped" || name.starts_with("moe/");
      metrics.emplace_back(of_both ? cat("critic/", name) : name, value);
    }
  metrics.emplace_back("critic/vf_loss", critic.loss);
  metrics.emplace_back("critic/grad_norm", critic.grad_norm);
  metrics.emplace_back("critic/lr", critic.learning_rate);
  state.add(policy.ratio);
  state.report(metrics);
}

// The updates of a rollout step after step `before`, and an evaluation after the last of them if
// one is due. Returns the number of the last step.
Task<std::int64_t> ppo_updates(const PpoUpdates& u, const RolloutBatch& samples,
                               std::int64_t before, std::int64_t rollout_step) {
  std::int64_t step = before;
  UpdateState state{.version = u.batches.updates_before(samples)};
  auto batches = minibatches(samples, u.config, static_cast<std::uint64_t>(rollout_step));
  for (auto& minibatch : batches) {
    if (step == u.plan.steps) break;
    ++step;
    Metrics metrics;
    u.c.journal.processed(processed_of(minibatch.critic, u.epoch));
    co_await train(u, step, std::move(minibatch), state, metrics);
    metrics.insert(metrics.end(), samples.metrics.begin(), samples.metrics.end());
    const bool last = &minibatch == &batches.back() || step == u.plan.steps;
    if (last) {
      co_await u.batches.evaluate(before, step, metrics);
    }
    record_step(u.c, u.plan, step, metrics);
  }
  co_return step;
}

// The samples of the next prompts; nullopt when they are used up.
Task<std::optional<RolloutBatch>> sample_batch(Sampling from, Loader& data,
                                               const PpoConfig& config) {
  const auto prompts = data.next();
  if (!prompts) co_return std::nullopt;
  const Json state = data.state();
  const auto epoch = data.epoch();
  from.cluster.journal.status(
      cat("generating ", prompts->ids.size() * static_cast<std::size_t>(config.group), " samples"));
  auto sampling = sample_rollouts(std::move(from), *prompts, config, config.kl_coef != 0);
  std::optional<RolloutBatch> samples = co_await sampling;
  samples->data_state = state;
  samples->epoch = epoch;
  co_return samples;
}

// Advantages and returns of a batch, with the values of the critic.
Task<void> complete(Cluster& c, RolloutBatch& samples, const PpoConfig& config) {
  const ActivityScope preparing(c.journal, Activity::advantage);
  apply_rewards(samples);
  Metrics mismatch;
  if (config.recompute_old) {
    co_await recompute_old_logp(c, samples.batch, config.sampling.temperature);
    if (!config.policy.correction.any()) {
      mismatch = mismatch_metrics(samples.batch);
      samples.batch.rollout_logp.clear();
    }
  }
  c.journal.passed({PassModel::critic, false, sizes_of(samples.batch)});
  protocol::Score message{critic_inputs(samples.batch), engine::loss::ReadAt::token, {}};
  auto reply = c.critic->ask(std::move(message), c.timeout);
  const auto values = co_await reply.get();
  compute_advantages(samples, values, config.kl_coef, config);
  samples.metrics.insert(samples.metrics.end(), mismatch.begin(), mismatch.end());
  if (config.parity_sample > 0) co_await add_vocabulary_difference(c, samples, config);
}

protocol::RunState run_state(const Json& data, const PpoConfig& config) {
  return {.data = data, .algorithm = fields_to_json(PpoState{config.kl_coef})};
}

struct PpoRun {
  Cluster& c;
  TrainingPlan& plan;
  const CriticPlan& critic;
  PpoConfig& config;
  RolloutBatches& batches;
  Json start;  ///< the loader's state before the first batch
};

// Trains on the batches in their order.
Task<void> train_on_batches(PpoRun& run) {
  PpoConfig& config = run.config;
  const std::int64_t updates_per_batch = std::int64_t{config.epochs} * config.minibatches;
  protocol::RunState state = run_state(run.start, config);
  for (std::int64_t step = run.plan.done, before = step; step < run.plan.steps;) {
    const bool incomplete = ends_within(run.plan, step, updates_per_batch);
    if (incomplete) {
      co_await run.batches.save_start(before, step, state);
    }
    auto samples = co_await run.batches.next();
    if (!samples) {
      co_await run.batches.end_early(before, step, state);
      break;
    }
    before = step;
    const std::int64_t rollout_step = before / updates_per_batch;
    co_await complete(run.c, *samples, config);
    const auto versions = run.batches.version_metrics(*samples);
    samples->metrics.insert(samples->metrics.end(), versions.begin(), versions.end());
    log_completions(run.c.journal, step + 1, *samples, config.logged_completions);

    const PpoUpdates updates{.c = run.c,
                             .plan = run.plan,
                             .critic = run.critic,
                             .config = config,
                             .batches = run.batches,
                             .policy_loss = policy_loss(config),
                             .warmup = rollout_step < config.critic_warmup,
                             .epoch = samples->epoch};
    step = co_await ppo_updates(updates, *samples, before, rollout_step);
    const auto count = static_cast<double>(samples->completions.size());
    config.kl_coef = config.control.next(config.kl_coef, mean_kl(samples->batch, config), count);
    state = run_state(samples->data_state, config);
    if (incomplete) state.round_start = before;
    const bool more = co_await run.batches.end_step(before, step, state);
    if (!more) break;
  }
}

}  // namespace

Result<> resume(PpoConfig& config, const Json& state) {
  if (config.control.schedule != KlSchedule::adaptive || state.is_null()) return {};
  const auto saved = fields_from_json<PpoState>(state, "algorithm state");
  RETURN_IF_ERROR(saved);
  config.kl_coef = saved->kl_coef;
  return {};
}

Task<void> ppo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, TrainingPlan plan,
               CriticPlan critic, PpoConfig config, HeldOutPrompts held_out) {
  const BatchPlan form{.async = config.async,
                       .samples = data.batch_size() * config.group,
                       .updates = std::int64_t{config.epochs} * config.minibatches};
  RolloutBatches batches(c, plan, form, held_out, [&](Sampling from, bool) {
    return sample_batch(std::move(from), data, config);
  });
  PpoRun run{c, plan, critic, config, batches, data.state()};
  co_await evaluate_initial(c, held_out, plan.done);
  auto training = train_on_batches(run);
  co_await batches.run(std::move(training));
}

}  // namespace troupe::algorithms
