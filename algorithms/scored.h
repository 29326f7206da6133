// The loop that reward models share: an outcome and a process model differ in their rows and in
// their loss.
#pragma once

#include "algorithms/follow.h"
#include "algorithms/held_out.h"
#include "engine/data/loader.h"

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

}  // namespace troupe::algorithms
