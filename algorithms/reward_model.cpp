#include "algorithms/reward_model.h"

namespace troupe::algorithms {

Task<Metrics> evaluate_scores(Cluster& c, const std::vector<engine::data::Experience>& batches,
                              const engine::loss::AnyLoss& loss) {
  c.journal.status("evaluating held-out rows");
  EvalMetrics eval(loss.spec());
  for (const auto& batch : batches) {
    protocol::Score message{batch, loss.needs().scores_at, loss.needs().candidates};
    auto scoring = c.policy.ask(std::move(message), c.timeout);
    const auto scores = co_await scoring.get();
    eval.add_scores(batch, scores);
  }
  co_return eval.metrics();
}

Task<void> orm(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               OrmLoss loss, HeldOut held_out) {
  return train_on_scores<engine::data::PairExample>(
      c, data, std::move(plan), loss, std::move(held_out), engine::data::to_scored_pairs);
}

Task<void> prm(Cluster& c, engine::data::Loader<engine::data::StepExample>& data, Plan plan,
               PrmLoss loss, HeldOut held_out) {
  return train_on_scores<engine::data::StepExample>(
      c, data, std::move(plan), loss, std::move(held_out), engine::data::to_experience);
}

}  // namespace troupe::algorithms
