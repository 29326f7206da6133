#include "algorithms/row_training.h"

namespace troupe::algorithms {

Task<Metrics> evaluate_rows(Cluster& c, const std::vector<engine::data::Experience>& batches,
                            const engine::loss::AnyLoss& loss) {
  c.journal.status("evaluating held-out rows");
  EvalMetrics eval(loss.spec());
  for (const auto& batch : batches) {
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
