#include "algorithms/weight_sync.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

// Nats. The same grid and precision give the same bits; other grids sum in another order. A tensor
// in the wrong place is off by far more.
constexpr double agreement = 0.05;

double greatest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = apart <= most ? most : apart;  // not-a-number counts as apart
  }
  return most;
}

}  // namespace

void expect_agreement(const protocol::Weights& weights, const std::vector<float>& logp,
                      const transports::Address& who) {
  const double apart = greatest_difference(weights.probe.logp, logp);
  if (!(apart <= agreement))
    throw Failure({Errc::corrupt, cat(to_string(who), ": with the weights of version ",
                                      weights.version, " its log-probabilities of the probe are ",
                                      apart, " nats from the policy's (at most ", agreement,
                                      " is expected): it is another model, or its parts lie in the "
                                      "wrong place; nobody took them")});
}

Task<void> refresh_rollouts(Cluster& c) {
  protocol::Publish publish;
  auto publishing = c.policy.ask(std::move(publish), c.patience);
  const auto weights = co_await publishing.get();
  std::vector<actors::Reply<std::vector<float>>> preparing;
  for (auto& rollout : c.rollouts) {
    protocol::PrepareWeights message{weights};
    preparing.push_back(rollout.ask(std::move(message), c.patience));
  }
  for (std::size_t i = 0; i < preparing.size(); ++i) {
    const auto logp = co_await preparing[i].get();
    expect_agreement(weights, logp, c.rollouts[i].address());
  }
  std::vector<actors::Reply<void>> committing;
  for (auto& rollout : c.rollouts) {
    protocol::CommitWeights message{weights.version};
    committing.push_back(rollout.ask(std::move(message), c.patience));
  }
  for (auto& reply : committing) co_await reply.get();
}

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
