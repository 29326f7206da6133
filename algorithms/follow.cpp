#include "algorithms/follow.h"

#include "algorithms/refresh.h"

namespace troupe::algorithms {

Task<void> follow_policy(Cluster& c, double share) {
  protocol::Publish publish;
  auto publishing = c.policy.ask(std::move(publish), c.patience);
  const auto weights = co_await publishing.get();
  protocol::PrepareWeights prepare{weights};
  auto preparing = c.follower->ask(std::move(prepare), c.patience);
  const auto logp = co_await preparing.get();
  expect_agreement(weights, logp, c.follower->address());
  protocol::MixWeights mix{weights.version, share};
  auto mixing = c.follower->ask(std::move(mix), c.patience);
  co_await mixing.get();
}

Task<bool> close_step(Cluster& c, const Plan& plan, std::int64_t step, Metrics metrics,
                      Following following, Json state) {
  c.journal.record(step, metrics);
  if (following.due(step)) {
    auto moving = follow_policy(c, following.share);
    co_await moving;
  }
  auto ending = end_step(c, plan, step - 1, step, std::move(state));
  const bool more = co_await ending;
  co_return more;
}

}  // namespace troupe::algorithms
