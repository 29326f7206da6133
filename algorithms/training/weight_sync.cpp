#include "algorithms/training/weight_sync.h"

#include <algorithm>
#include <cmath>

#include "actors/runtime/when_all.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

// Tolerance of the probe's log-probabilities, in nats. Equal grids and precisions give equal bits;
// other grids sum in another order. A misplaced tensor differs by far more.
constexpr double probe_tolerance = 0.05;

double max_abs_diff(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double max = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    max = difference <= max ? max : difference;  // NaN counts as a difference
  }
  return max;
}

}  // namespace

void check_probe(const protocol::Weights& weights, const std::vector<float>& logp,
                 const transports::Address& who) {
  const double difference = max_abs_diff(weights.probe.logp, logp);
  if (difference <= probe_tolerance) return;
  throw Failure({Errc::corrupt,
                 cat(to_string(who), ": with weights version ", weights.version,
                     " the log-probabilities of the probe differ by ", difference,
                     " nats from the policy's (expected at most ", probe_tolerance,
                     "): it has another model, or tensors are misplaced; no rollout uses them")});
}

Task<protocol::Weights> publish_weights(Cluster& c, std::int64_t batches) {
  const auto version = static_cast<std::uint64_t>(batches);
  protocol::Weights weights;
  if (c.stream) {
    WeightStream::Source source(c.policy.asker(), c.policy.address());
    auto fetching = c.stream->fetch(source, version);
    weights = co_await fetching;
  } else {
    protocol::Publish publish{version};
    auto publishing = c.policy.ask(std::move(publish), c.timeout);
    weights = co_await publishing.get();
  }
  if (c.ledger) c.ledger->published(weights, c.stream && c.stream->rounds());
  co_return weights;
}

Task<void> prepare_weights(Cluster& c, WeightReceiver receiver, const protocol::Weights& weights) {
  protocol::PrepareWeights message{weights};
  if (c.stream) {
    WeightStream::Receiver to(receiver.asker(), receiver.address());
    co_await c.stream->send(to, weights);
    message.weights.values = {};
  }
  auto preparing = receiver.ask(std::move(message), c.timeout);
  const auto logp = co_await preparing.get();
  check_probe(weights, logp, receiver.address());
}

Task<void> commit_weights(Cluster& c, RolloutRef rollout, const protocol::Weights& weights) {
  protocol::CommitWeights message{weights.version};
  auto committing = rollout.ask(std::move(message), c.timeout);
  co_await committing.get();
  if (c.recovery) c.recovery->has_version(rollout.address().node, weights.version);
  if (c.stream) c.stream->committed(rollout.address(), weights);
}

Task<void> take_weights(Cluster& c, RolloutRef rollout) {
  const SharedWeights weights = c.recovery->weights();
  if (!weights || c.recovery->version(rollout.address().node) == weights->version) co_return;
  co_await prepare_weights(c, rollout, *weights);
  co_await commit_weights(c, rollout, *weights);
}

namespace {

Task<void> unless_lost(Cluster& c, RolloutRef rollout, Task<void> work) {
  co_await survives(c, rollout, std::move(work));
}

}  // namespace

Task<void> sync_weights(Cluster& c, std::int64_t batches) {
  if (c.recovery) c.recovery->use_weights(nullptr);
  auto publishing = publish_weights(c, batches);
  const auto weights = std::make_shared<const protocol::Weights>(co_await publishing);
  if (c.recovery) c.recovery->use_weights(weights);
  std::vector<RolloutRef> present;
  for (auto& rollout : c.rollouts)
    if (take_successor(c, rollout)) present.push_back(rollout);
  std::vector<Task<void>> preparing, committing;
  for (const auto& rollout : present)
    preparing.push_back(unless_lost(c, rollout, prepare_weights(c, rollout, *weights)));
  co_await actors::when_all(std::move(preparing));
  for (const auto& rollout : present)
    if (is_present(c, rollout))
      committing.push_back(unless_lost(c, rollout, commit_weights(c, rollout, *weights)));
  co_await actors::when_all(std::move(committing));
}

Task<void> sync_reference(Cluster& c, std::int64_t batches, double share) {
  auto publishing = publish_weights(c, batches);
  const auto weights = co_await publishing;
  co_await prepare_weights(c, *c.synced_reference, weights);
  protocol::MixWeights mix{weights.version, share};
  auto mixing = c.synced_reference->ask(std::move(mix), c.timeout);
  co_await mixing.get();
}

Task<bool> finish_step(Cluster& c, TrainingPlan& plan, std::int64_t step, Metrics metrics,
                       ReferenceSync sync, Json data) {
  record_step(c, plan, step, metrics);
  if (sync.due(step)) {
    co_await sync_reference(c, step, sync.share);  // a step has one batch
  }
  protocol::RunState state{std::move(data), {}};
  const bool more = co_await end_step(c, plan, step - 1, step, std::move(state));
  co_return more;
}

}  // namespace troupe::algorithms
