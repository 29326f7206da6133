// Held-out data: batches for evaluation that are never trained on.
#pragma once

#include <span>
#include <vector>

#include "algorithms/training/cluster.h"
#include "engine/data/loader/loader.h"
#include "engine/loss/loss.h"

namespace troupe::algorithms {

struct HeldOut {
  std::vector<engine::data::Experience> batches;  ///< evaluated one by one
  std::int64_t every = 0;  ///< steps between evaluations; 0: only after the last step
  /// True when an evaluation is due after step `step` of `steps`.
  bool due(std::int64_t step, std::int64_t steps) const {
    return !batches.empty() && (step == steps || (every > 0 && step % every == 0));
  }
};

/// All examples, in their order, in batches of `size`.
template <class T>
std::vector<engine::data::Batch<T>> in_batches(const std::vector<T>& examples, std::int64_t size) {
  std::vector<engine::data::Batch<T>> out;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (i % static_cast<std::size_t>(size) == 0) out.emplace_back();
    out.back().examples.push_back(&examples[i]);
    out.back().ids.push_back(i);
  }
  return out;
}

/// Loss and metrics of batches without a gradient, from the policy's log-probabilities or scores.
class EvalMetrics {
 public:
  /// `loss` is in the catalog and reads log-probabilities only, or scores only.
  explicit EvalMetrics(const engine::loss::LossSpec& loss);
  void add(const engine::data::Experience& batch, const std::vector<float>& logp);
  /// `scores` [T, C]: the reply to protocol::Score.
  void add_scores(const engine::data::Experience& batch, const std::vector<float>& scores);
  /// Returns "eval/loss", the mean over the units that the batches count, and "eval/NAME" for each
  /// statistic.
  Metrics metrics() const;

 private:
  engine::loss::AnyLoss loss_;
  engine::loss::Report report_;
  double sum_ = 0, count_ = 0;
};

/// Pairs with a similar confidence of the reward model.
struct ConfidenceBin {
  double low = 0, high = 0;  ///< of the confidence
  std::size_t pairs = 0;
  double confidence = 0, accuracy = 0;  ///< means over the pairs
};

struct Calibration {
  double accuracy = 0;  ///< pairs with a margin above 0
  /// Expected calibration error: sum over bins of (pairs in it / all pairs) |accuracy -
  /// confidence|.
  double error = 0;
  std::vector<ConfidenceBin> bins;
};

/// Calibration of a reward model from its margins s_w - s_l. Under the Bradley-Terry model the
/// answer with the higher score is the better one with probability sigmoid(|margin|): the
/// confidence, from 0.5 to 1, which is cut into `bins` bins of equal width (Naeini et al. 2015; Guo
/// et al. 2017, arXiv:1706.04599, eq. 3). A margin of 0 counts as wrong.
Calibration calibration(std::span<const double> margins, int bins);

}  // namespace troupe::algorithms
