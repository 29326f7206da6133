#include "algorithms/plan.h"

#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

bool due(const Plan& plan, std::int64_t previous, std::int64_t step) {
  return plan.save_every > 0 && step / plan.save_every > previous / plan.save_every;
}

Task<void> save(Cluster& cluster, std::int64_t step, Json state) {
  if (cluster.critic) {  // first: a policy's checkpoint says that the whole step is there
    protocol::Save judge{step, state};
    auto saving_judge = cluster.critic->ask(std::move(judge), cluster.patience);
    co_await saving_judge.get();
  }
  if (cluster.follower) {
    protocol::Save reference{step, {}};
    auto saving_reference = cluster.follower->ask(std::move(reference), cluster.patience);
    co_await saving_reference.get();
  }
  protocol::Save message{step, std::move(state)};
  auto saving = cluster.policy.ask(std::move(message), cluster.patience);
  const auto path = co_await saving.get();
  log_info(cat("step ", step, ": saved ", path));
}

}  // namespace

Task<bool> end_step(Cluster& cluster, const Plan& plan, std::int64_t previous, std::int64_t step,
                    Json state) {
  const bool last = step >= plan.steps, stopping = cluster.stop.requested();
  if (last || stopping || due(plan, previous, step)) {
    auto saving = save(cluster, step, std::move(state));
    co_await saving;
  }
  co_return !last && !stopping;
}

Task<void> end_early(Cluster& cluster, const Plan& plan, std::int64_t previous, std::int64_t step,
                     Json state) {
  if (step == plan.done || due(plan, previous, step)) co_return;
  auto saving = save(cluster, step, std::move(state));
  co_await saving;
}

Task<Metrics> update(Cluster& cluster, const Plan& plan, std::int64_t step,
                     engine::data::Experience batch, engine::loss::LossSpec loss) {
  protocol::TrainStep message{std::move(batch), std::move(loss), plan.rate(step)};
  auto training = cluster.policy.ask(std::move(message), cluster.patience);
  const auto stats = co_await training.get();
  co_return metrics_of(stats);
}

Metrics metrics_of(const protocol::StepStats& stats) {
  Metrics metrics{{"loss", stats.loss},
                  {"grad_norm", stats.grad_norm},
                  {"learning_rate", stats.learning_rate},
                  {"tokens", stats.tokens}};
  metrics.insert(metrics.end(), stats.metrics.begin(), stats.metrics.end());
  return metrics;
}

}  // namespace troupe::algorithms
