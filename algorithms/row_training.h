// The loop of methods whose batches need nothing but the rows themselves: fine-tuning and reward
// models differ in their rows and in their loss.
#pragma once

#include "algorithms/held_out.h"
#include "algorithms/training/weight_sync.h"
#include "engine/data/loader/loader.h"

namespace troupe::algorithms {

/// The loss and the metrics of held-out batches ("eval/..."), from the policy's scores if the loss
/// reads scores, otherwise from its log-probabilities.
Task<Metrics> evaluate_rows(Cluster& c, const std::vector<engine::data::Experience>& batches,
                            const engine::loss::AnyLoss& loss);

/// Each step: an update on the next rows, which `batch_of` converts to a batch, and an evaluation
/// of the held-out batches when one is due.
template <class T>
Task<void> train_on_rows(Cluster& c, engine::data::Loader<T>& data, TrainingPlan plan,
                         engine::loss::AnyLoss loss, HeldOut held_out,
                         engine::data::Experience (*batch_of)(const engine::data::Batch<T>&)) {
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto rows = data.next();
    if (!rows) break;
    auto batch = batch_of(*rows);
    plan.average.apply(batch);
    c.journal.processed(processed_of(batch, data.epoch()));
    auto updating = update(c, plan, step, std::move(batch), loss.spec());
    auto metrics = co_await updating;
    if (held_out.due(step, plan.steps)) {
      auto evaluating = evaluate_rows(c, held_out.batches, loss);
      const auto eval = co_await evaluating;
      metrics.insert(metrics.end(), eval.begin(), eval.end());
    }
    auto ending = finish_step(c, plan, step, std::move(metrics), {}, data.state());
    const bool more = co_await ending;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
