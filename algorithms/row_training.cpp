#include "algorithms/row_training.h"

namespace troupe::algorithms {

Task<Metrics> evaluate_rows(Cluster& c, const std::vector<engine::data::Experience>& batches,
                            const engine::loss::AnyLoss& loss) {
  const ActivityScope evaluating(c.journal, Activity::evaluation);
  std::int64_t done = 0;
  EvalMetrics eval(loss.spec());
  for (const auto& batch : batches) {
    c.journal.progress("evaluating held-out rows", done++, std::ssize(batches));
    c.journal.passed({PassModel::policy, false, sizes_of(batch)});
    if (loss.needs().scores) {
      protocol::Score message{batch, loss.needs().scores_at, loss.needs().candidates};
      auto scoring = c.policy.ask(std::move(message), c.timeout);
      const auto scores = co_await scoring.get();
      eval.add_scores(batch, scores);
    } else {
      protocol::Logprobs message{batch, 1.0};
      auto scoring = c.policy.ask(std::move(message), c.timeout);
      const auto logp = co_await scoring.get();
      eval.add(batch, logp);
    }
  }
  co_return eval.metrics();
}

}  // namespace troupe::algorithms
