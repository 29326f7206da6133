#include "algorithms/training/plan.h"

#include <filesystem>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/read_checkpoint.h"

namespace troupe::algorithms {
namespace {

std::int64_t step_of(const std::string& path) {
  return engine::checkpoint::step_of_name(std::filesystem::path(path).filename().string())
      .value_or(0);
}

void log_saved(const std::string& path) {
  log_info(cat("step ", step_of(path), ": saved ", path));
}

void note_saved(const Cluster& cluster, const std::string& path) {
  log_saved(path);
  if (cluster.ledger) cluster.ledger->saved(step_of(path), path);
}

bool due(const TrainingPlan& plan, std::int64_t previous, std::int64_t step) {
  return plan.save_every > 0 && step / plan.save_every > previous / plan.save_every;
}

// Whether the caller continues while the checkpoint is written.
enum class Saving { waits, overlapped };

struct SaveState {
  bool ended = false;  ///< the actor is not writing a checkpoint any more
  std::string path;    ///< of a checkpoint that is durable since then
};

// `wait`: until it has ended.
template <class Ref>
Task<SaveState> finish_save(Ref actor, bool wait, std::chrono::steady_clock::duration timeout) {
  auto finishing = actor.ask(protocol::FinishSave{wait}, timeout);
  std::string path = co_await finishing.get();
  const bool ended = wait || !path.empty();
  co_return SaveState{ended, std::move(path)};
}

// Files beside the checkpoint before may be replaced only when that is durable. The policy's is
// completed when that of the critic is durable.
Task<void> end_saving(Cluster& cluster, bool wait) {
  if (cluster.critic_saving) {
    auto finishing = finish_save(*cluster.critic, wait, cluster.timeout);
    const SaveState critic = co_await finishing;
    cluster.critic_saving = !critic.ended;
  }
  if (!cluster.saving || cluster.critic_saving) co_return;
  auto finishing = finish_save(cluster.policy, wait, cluster.timeout);
  const SaveState policy = co_await finishing;
  cluster.saving = !policy.ended;
  if (!policy.path.empty()) note_saved(cluster, policy.path);
}

Task<void> save(Cluster& cluster, const TrainingPlan& plan, std::int64_t step,
                protocol::RunState state, Saving how) {
  auto before = end_saving(cluster, true);
  co_await before;
  const bool overlapped = how == Saving::overlapped && cluster.overlaps_saves;
  state.journal = cluster.journal.commit(step);
  if (cluster.ledger) state.journal.set("ledger", cluster.ledger->anchor(step, state.batches));
  state.selection = plan.selection.state();
  state.best_step = plan.selection.best_step();
  const std::int64_t models = 1 + cluster.critic.has_value() + cluster.synced_reference.has_value();
  std::int64_t saved = 0;
  if (plan.before_save) plan.before_save(step, state);  // as the others below
  const auto show = [&] {
    cluster.journal.progress(cat("saving checkpoint-", step), saved++, models);
  };
  if (cluster.critic) {  // first: a policy's checkpoint marks the whole step as complete
    show();
    protocol::Save critic{step, state, overlapped};
    critic.state.kept.clear();  // these are files of the policy's checkpoint
    critic.state.journal = {};
    auto saving_critic = cluster.critic->ask(std::move(critic), cluster.timeout);
    const auto saved_critic = co_await saving_critic.get();
    cluster.critic_saving = saved_critic.empty();
  }
  if (cluster.synced_reference) {
    show();
    protocol::Save reference{step, {}};
    reference.state.best_step = state.best_step;
    reference.state.round_start = state.round_start;
    auto saving_reference = cluster.synced_reference->ask(std::move(reference), cluster.timeout);
    co_await saving_reference.get();
  }
  show();
  protocol::Save policy{step, std::move(state), overlapped};
  auto saving = cluster.policy.ask(std::move(policy), cluster.timeout);
  const auto path = co_await saving.get();
  cluster.journal.status("");
  cluster.saving = path.empty();
  if (!cluster.saving) note_saved(cluster, path);
}

void log_end(const TrainingPlan& plan, std::int64_t step, bool interrupted) {
  if (plan.selection.stops() && step < plan.steps)
    log_info(cat("step ", step, ": early stopping: ", plan.selection.reason()));
  if (const auto best = plan.selection.best_text(); !best.empty() && !interrupted)
    log_info(cat("best checkpoint: ", best));
}

}  // namespace

void record_step(Cluster& cluster, TrainingPlan& plan, std::int64_t step, const Metrics& metrics) {
  cluster.journal.record(step, metrics);
  plan.selection.observe(step, metrics);
}

Task<void> finish_saves(std::optional<CriticRef> critic, PolicyRef policy,
                        std::chrono::steady_clock::duration timeout) {
  if (critic) {
    auto finishing = finish_save(*critic, true, timeout);
    co_await finishing;
  }
  auto finishing = finish_save(policy, true, timeout);
  const SaveState saved = co_await finishing;
  if (!saved.path.empty()) log_saved(saved.path);
}

Task<bool> end_step(Cluster& cluster, const TrainingPlan& plan, std::int64_t previous,
                    std::int64_t step, protocol::RunState state) {
  if (cluster.ledger) cluster.ledger->committed(previous, step, state, plan.selection.state());
  const bool last = step >= plan.steps || plan.selection.stops();
  const bool stopping = cluster.stop.requested();
  if (last || stopping || plan.selection.is_best(step) || due(plan, previous, step)) {
    const Saving how = last || stopping ? Saving::waits : Saving::overlapped;
    co_await save(cluster, plan, step, std::move(state), how);
  } else {
    co_await end_saving(cluster, false);
  }
  if (last || stopping) log_end(plan, step, !last);
  co_return !last && !stopping;
}

Task<void> end_early(Cluster& cluster, const TrainingPlan& plan, std::int64_t previous,
                     std::int64_t step, protocol::RunState state, bool added) {
  if (!added && (step == plan.done || due(plan, previous, step)))
    co_await end_saving(cluster, true);
  else
    co_await save(cluster, plan, step, std::move(state), Saving::waits);
}

bool ends_within(const TrainingPlan& plan, std::int64_t step, std::int64_t updates) {
  return plan.steps - step < updates;
}

Task<void> save_round_start(Cluster& cluster, const TrainingPlan& plan, std::int64_t previous,
                            std::int64_t step, protocol::RunState state) {
  const bool saved = step == plan.done ? plan.done_is_saved
                                       : due(plan, previous, step) || plan.selection.is_best(step);
  if (step == 0 || saved || !plan.resumable) co_return;
  co_await save(cluster, plan, step, std::move(state), Saving::overlapped);
}

Task<protocol::StepStats> train_step(Cluster& cluster, const TrainingPlan& plan, std::int64_t step,
                                     engine::data::Experience batch, engine::loss::LossSpec loss) {
  cluster.journal.passed({PassModel::policy, true, sizes_of(batch)});
  if (cluster.ledger) cluster.ledger->trained(batch);
  protocol::TrainStep message{std::move(batch), std::move(loss), plan.rate(step)};
  auto training = cluster.policy.ask(std::move(message), cluster.timeout);
  const auto stats = co_await training.get();
  if (!stats.experts.layers.empty()) cluster.journal.loads(step, stats.experts);
  co_return stats;
}

Metrics metrics_of(const protocol::StepStats& stats) {
  Metrics metrics{{"loss", stats.loss},
                  {"grad_norm", stats.grad_norm},
                  {"learning_rate", stats.learning_rate},
                  {"tokens", stats.tokens}};
  metrics.insert(metrics.end(), stats.metrics.begin(), stats.metrics.end());
  return metrics;
}

Task<Metrics> update(Cluster& cluster, const TrainingPlan& plan, std::int64_t step,
                     engine::data::Experience batch, engine::loss::LossSpec loss) {
  const auto stats = co_await train_step(cluster, plan, step, std::move(batch), std::move(loss));
  co_return metrics_of(stats);
}

}  // namespace troupe::algorithms
