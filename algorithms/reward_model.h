// The loop that reward models share: an outcome and a process model differ in their rows and in
// their loss.
#pragma once

#include "algorithms/held_out.h"
#include "algorithms/losses/orm_loss.h"
#include "algorithms/losses/prm_loss.h"
#include "algorithms/weight_sync.h"
#include "engine/data/loader/loader.h"

namespace troupe::algorithms {

/// The loss and the metrics of held-out batches ("eval/..."), by a loss that reads scores.
Task<Metrics> judge_scores(Cluster& c, const std::vector<engine::data::Experience>& batches,
                           const engine::loss::AnyLoss& loss);

/// Each step: an update on the next rows, as `batch_of` makes them a batch, and a look at the
/// held-out batches where one is due.
template <class T>
Task<void> train_on_scores(Cluster& c, engine::data::Loader<T>& data, Plan plan,
                           engine::loss::AnyLoss loss, HeldOut held_out,
                           engine::data::Experience (*batch_of)(const engine::data::Batch<T>&)) {
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto rows = data.next();
    if (!rows) break;
    auto updating = update(c, plan, step, batch_of(*rows), loss.spec());
    auto metrics = co_await updating;
    if (held_out.due(step, plan.steps)) {
      auto judging = judge_scores(c, held_out.batches, loss);
      const auto judged = co_await judging;
      metrics.insert(metrics.end(), judged.begin(), judged.end());
    }
    auto ending = close_step(c, plan, step, std::move(metrics), {}, data.state());
    const bool more = co_await ending;
    if (!more) break;
  }
}

// Outcome reward models: of two answers the preferred one is to score higher.
/// c.policy is the reward model: a model with a score head of one label. Held-out batches are
/// data::to_scored_pairs.
Task<void> orm(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               OrmLoss loss, HeldOut held_out = {});

// Process reward models: a score for every step of a solution.
/// c.policy is the reward model: one with a score head of as many labels as there are classes, or,
/// for placeholders, a language model. Held-out batches judge every step.
Task<void> prm(Cluster& c, engine::data::Loader<engine::data::StepExample>& data, Plan plan,
               PrmLoss loss, HeldOut held_out = {});

}  // namespace troupe::algorithms
