// Group Relative Policy Optimization (Shao et al. 2024, arXiv:2402.03300) and its relatives: sample
// a group of answers to each prompt, compute their rewards, prefer those above the baseline. One
// step is one optimizer update; epochs * minibatches updates share the samples of a rollout step.
#include "algorithms/grpo.h"

#include <algorithm>

#include "algorithms/dynamic_sampling.h"
#include "algorithms/grpo_minibatches.h"
#include "algorithms/rollout/batches.h"
#include "algorithms/rollout/parity_sample.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

using Loader = engine::data::Loader<engine::data::PromptRow>;

// The reward of the greedy answer to each prompt (ReMax). Its sample id is the prompt's with the
// highest bit set, which no other sample has.
Task<std::vector<double>> greedy_rewards(Sampling from, PromptBatch prompts,
                                         const GrpoConfig& config) {
  RolloutOptions greedy = config;
  greedy.group = 1;
  greedy.sampling.greedy = true;
  from.ledger = nullptr;  // they are not trained
  for (auto& id : prompts.ids) id |= std::uint64_t{1} << 63;
  auto sampling = sample_rollouts(std::move(from), std::move(prompts), std::move(greedy), false);
  const auto samples = co_await sampling;
  co_return shaped_rewards(samples, config);
}

void add_sampling_metrics(RolloutBatch& samples) {
  const auto kept = static_cast<double>(samples.prompts.ids.size());
  const SamplingStats& stats = samples.stats;
  samples.metrics.emplace_back("dynamic_filtering_pass_rate",
                               kept / static_cast<double>(stats.groups));
  samples.metrics.emplace_back("filter_groups/refills", static_cast<double>(stats.refills));
  samples.metrics.emplace_back("filter_groups/reward",
                               stats.reward_sum / static_cast<double>(stats.rewards));
}

// The samples of a batch, with the greedy rewards where the advantages need them; nullopt also when
// the run is asked to stop while other programs make them.
Task<std::optional<RolloutBatch>> sample_batch(Sampling from, Loader& data,
                                               const GrpoConfig& config, bool has_trained) {
  auto sampling = next_batch(from, data, config, has_trained);
  std::optional<RolloutBatch> samples;
  try {
    samples = co_await sampling;
  } catch (const Failure& failure) {
    const bool ended = config.external && from.cluster.stop.requested();
    if (!ended || failure.error().code != Errc::cancelled) throw;
  }
  if (samples && config.advantage.estimator == Estimator::remax) {
    auto answering = greedy_rewards(std::move(from), samples->prompts, config);
    samples->baselines = co_await answering;
  }
  co_return samples;
}

// True if the only update of a batch computes what a recomputation would: the log-probabilities of
// the weights that it starts from. GrpoLoss takes them where old_logp is absent. The update then
// starts without waiting for a forward pass over the batch, and its bits are the same.
bool update_recomputes_old(const GrpoConfig& config) {
  return config.epochs * config.minibatches == 1 && config.loss.proximal == Proximal::given &&
         config.loss.correction.any() && config.advantage.reward_beta == 0;
}

// Advantages and metrics of a batch. The policy recomputes old_logp where the configuration needs
// it.
Task<void> complete(Cluster& c, RolloutBatch& samples, const GrpoConfig& config) {
  const ActivityScope preparing(c.journal, Activity::advantage);
  if (config.recompute_old && update_recomputes_old(config)) {
    samples.batch.rollout_logp = std::move(samples.batch.old_logp);
    samples.batch.old_logp.clear();
  } else if (config.recompute_old) {
    co_await recompute_old_logp(c, samples.batch, config.loss.temperature);
  }
  compute_advantages(samples, config, std::move(samples.baselines));
  if (config.recompute_old && !config.loss.correction.any()) {
    const auto mismatch = mismatch_metrics(samples.batch);
    samples.metrics.insert(samples.metrics.end(), mismatch.begin(), mismatch.end());
  }
  if (config.dynamic.on) add_sampling_metrics(samples);
  if (config.parity_sample > 0) co_await add_vocabulary_difference(c, samples, config);
}

// The loss of the next update: with the coefficient of the entropy controller and the version that
// the update starts from.
GrpoLoss next_loss(const GrpoConfig& config, const GrpoState& state, std::uint64_t version) {
  GrpoLoss loss = config.loss;
  if (config.entropy.adaptive()) loss.entropy_coef = state.entropy_bonus;
  if (loss.proximal != Proximal::given) loss.version = static_cast<double>(version);
  return loss;
}

// Adjusts the entropy bonus of the next update to the entropy of this one.
void control_entropy(const EntropyControl& control, GrpoState& state,
                     const protocol::StepStats& stats, Metrics& metrics) {
  if (!control.adaptive()) return;
  metrics.emplace_back("entropy_coef", state.entropy_bonus);
  if (!stats.entropy) return;
  state.entropy_coef = control.next(state.entropy_coef, *stats.entropy);
  state.entropy_bonus = control.bonus(state.entropy_coef, *stats.entropy);
}

// The updates of a rollout step, and what each of them processes.
struct Updates {
  std::vector<engine::data::Experience> batches;
  std::vector<Processed> sizes;
  double discarded = 0;  ///< tokens that dynamic sampling discarded, counted in the first update
};
Updates updates_of(Journal& journal, const RolloutBatch& samples, const GrpoConfig& config) {
  const ActivityScope preparing(journal, Activity::advantage);
  return {minibatches(samples, config), minibatch_sizes(samples, config, samples.epoch),
          samples.stats.tokens - samples.batch.token_count()};
}

// "tokens" of an update, with those of samples that have no gradient.
void set_tokens(Metrics& metrics, double tokens) {
  for (auto& [name, value] : metrics)
    if (name == "tokens") value = tokens;
}

struct GrpoRun {
  Cluster& c;
  TrainingPlan& plan;
  const GrpoConfig& config;
  GrpoState& state;
  RolloutBatches& batches;
  Json start;  ///< the loader's state before the first batch
};

Result<GrpoState> state_of(const GrpoConfig& config, const Json& saved) {
  const double initial = config.loss.entropy_coef;
  if (!config.entropy.adaptive() || saved.is_null())
    return GrpoState{.entropy_coef = initial, .entropy_bonus = initial};
  return fields_from_json<GrpoState>(saved, "algorithm state");
}

protocol::RunState run_state(const Json& data, const GrpoRun& run) {
  protocol::RunState state{.data = data, .algorithm = {}};
  if (run.config.entropy.adaptive()) state.algorithm = fields_to_json(run.state);
  return state;
}

// The updates of a batch after step `before`, and an evaluation after the last of them if one is
// due. Returns the number of the last step.
Task<std::int64_t> grpo_updates(GrpoRun& run, RolloutBatch& samples, std::int64_t before) {
  std::int64_t step = before;
  std::uint64_t version = run.batches.updates_before(samples);
  auto updates = updates_of(run.c.journal, samples, run.config);
  for (std::size_t i = 0; i < updates.batches.size() && step < run.plan.steps; ++i) {
    ++step;
    Processed size = updates.sizes[i];
    if (i == 0) size.tokens += updates.discarded;
    run.c.journal.processed(size);
    auto training = train_step(run.c, run.plan, step, std::move(updates.batches[i]),
                               spec_of(next_loss(run.config, run.state, version)));
    const auto stats = co_await training;
    version = stats.version;
    auto metrics = metrics_of(stats);
    set_tokens(metrics, updates.sizes[i].tokens);
    control_entropy(run.config.entropy, run.state, stats, metrics);
    metrics.insert(metrics.end(), samples.metrics.begin(), samples.metrics.end());
    const bool last = i + 1 == updates.batches.size() || step == run.plan.steps;
    if (last) {
      co_await run.batches.evaluate(before, step, metrics);
    }
    record_step(run.c, run.plan, step, metrics);
  }
  co_return step;
}

// Trains on the batches in their order.
Task<void> train_on_batches(GrpoRun& run) {
  const std::int64_t updates = std::int64_t{run.config.epochs} * run.config.minibatches;
  protocol::RunState state = run_state(run.start, run);
  for (std::int64_t step = run.plan.done, before = step; step < run.plan.steps;) {
    const bool incomplete = ends_within(run.plan, step, updates);
    if (incomplete) {
      co_await run.batches.save_start(before, step, state);
    }
    auto samples = co_await run.batches.next();
    if (!samples) {
      co_await run.batches.end_early(before, step, state);
      break;
    }
    co_await complete(run.c, *samples, run.config);
    const auto versions = run.batches.version_metrics(*samples);
    samples->metrics.insert(samples->metrics.end(), versions.begin(), versions.end());
    log_completions(run.c.journal, step + 1, *samples, run.config.logged_completions);

    before = step;
    step = co_await grpo_updates(run, *samples, before);
    state = run_state(samples->data_state, run);
    if (incomplete) state.round_start = before;
    const bool more = co_await run.batches.end_step(before, step, state);
    if (!more) break;
  }
}

}  // namespace

Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, TrainingPlan plan,
                GrpoConfig config, HeldOutPrompts held_out, Json saved) {
  GrpoState state = value_or_throw(state_of(config, saved));
  const BatchPlan form{
      .async = config.async,
      .samples = data.batch_size() * config.group,
      .updates = std::int64_t{config.epochs} * config.minibatches,
      .in_turn = config.dynamic.on || config.advantage.estimator == Estimator::remax,
      .external = config.external};
  RolloutBatches batches(c, plan, form, held_out, [&](Sampling from, bool has_trained) {
    return sample_batch(std::move(from), data, config, has_trained);
  });
  GrpoRun run{.c = c,
              .plan = plan,
              .config = config,
              .state = state,
              .batches = batches,
              .start = data.state()};
  co_await evaluate_initial(c, held_out, plan.done);
  auto training = train_on_batches(run);
  co_await batches.run(std::move(training));
}

}  // namespace troupe::algorithms
