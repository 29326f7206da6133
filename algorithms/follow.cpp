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

}  // namespace troupe::algorithms
