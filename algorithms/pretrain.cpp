#include "algorithms/pretrain.h"

#include <cmath>
#include <utility>

#include "algorithms/row_training.h"

namespace troupe::algorithms {

static_assert(Method<PretrainConfig>);

Task<void> pretrain(Cluster& c, PretrainingBatches& data, TrainingPlan plan,
                    PretrainingPlan batches, HeldOut held_out) {
  const engine::loss::AnyLoss loss{SftLoss{}};
  std::int64_t consumed = batches.rampup.consumed(plan.done, batches.full);
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const std::int64_t size = batches.rampup.size(consumed, batches.full);
    auto batch = data.next(size);
    if (!batch) break;
    consumed += size;
    c.journal.processed(processed_of(*batch, data.epoch()));
    auto updating = update(c, plan, step, std::move(*batch), loss.spec());
    auto metrics = co_await updating;
    if (batches.rampup.start > 0) metrics.emplace_back("batch_size", static_cast<double>(size));
    if (held_out.due(step, plan.steps)) {
      auto evaluating = evaluate_rows(c, held_out.batches, loss);
      const auto eval = co_await evaluating;
      metrics.insert(metrics.end(), eval.begin(), eval.end());
      metrics.emplace_back("eval/perplexity", std::exp(eval.front().second));
    }
    auto ending = finish_step(c, plan, step, std::move(metrics), {}, data.state());
    const bool more = co_await ending;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
