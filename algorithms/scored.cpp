#include "algorithms/scored.h"

namespace troupe::algorithms {

Task<Metrics> judge_scores(Cluster& c, const std::vector<engine::data::Experience>& batches,
                           const engine::loss::AnyLoss& loss) {
  c.journal.status("judging held-out rows");
  Tally tally(loss.spec());
  for (const auto& batch : batches) {
    protocol::Score message{batch, loss.needs().scores_at, loss.needs().candidates};
    auto scoring = c.policy.ask(std::move(message), c.patience);
    const auto scores = co_await scoring.get();
    tally.add_scores(batch, scores);
  }
  co_return tally.metrics();
}

}  // namespace troupe::algorithms
