// Held-out data: what the policy is judged by, and never trained on.
#pragma once

#include "algorithms/cluster.h"
#include "engine/loss/loss.h"

namespace troupe::algorithms {

struct HeldOut {
  std::vector<engine::data::Experience> batches;  ///< their loss is taken batch by batch
  std::int64_t every = 0;  ///< steps between two looks; 0: only after the last step
  /// After step `step` of `steps`.
  bool due(std::int64_t step, std::int64_t steps) const {
    return !batches.empty() && (step == steps || (every > 0 && step % every == 0));
  }
};

/// The loss and the metrics of batches, without a gradient: from log-probabilities or scores that
/// the policy was asked for.
class Tally {
 public:
  /// A name that the catalog has; the loss reads log-probabilities alone, or scores alone.
  explicit Tally(const engine::loss::LossSpec& loss);
  void add(const engine::data::Experience& batch, const std::vector<float>& logp);
  /// `scores` [T, C] by token, as protocol::Score is answered.
  void add_scores(const engine::data::Experience& batch, const std::vector<float>& scores);
  /// "eval/loss", the mean over all that the batches count, and "eval/NAME" of what the loss
  /// reports.
  Metrics metrics() const;

 private:
  engine::loss::AnyLoss loss_;
  engine::loss::Report report_;
  double sum_ = 0, count_ = 0;
};

}  // namespace troupe::algorithms
