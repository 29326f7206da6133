// Model selection: the best checkpoint of a run (train.keep_best) and the end of a run that no
// longer improves (train.early_stopping), both by a metric of its evaluations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/training/journal.h"
#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::algorithms {

/// A metric of the evaluations, and the direction in which it improves.
struct SelectionMetric {
  std::string name;  ///< "eval/loss"
  bool lower = false;
};

/// Parses "eval/loss", or with an explicit direction "-eval/entropy" (lower is better) or
/// "+eval/entropy" (higher is better). Errc::usage if the direction is neither given nor known.
Result<SelectionMetric> selection_metric(std::string_view text);

/// Follows one metric over the evaluations of a run.
class BestValue {
 public:
  BestValue() = default;
  explicit BestValue(SelectionMetric metric) : metric_(std::move(metric)) {}

  /// Compares the value at `step` with the best one; NaN is never better. True if it is the best.
  bool observe(std::int64_t step, double value);
  const SelectionMetric& metric() const { return metric_; }
  std::int64_t step() const { return step_; }    ///< of the best value; 0: none
  double value() const { return value_; }        ///< the best value
  std::int64_t since() const { return since_; }  ///< evaluations after the best one

  Json state() const;
  /// Continues from a state() of the same metric; that of another metric is ignored.
  Result<> restore(const Json& state, const std::string& where);

 private:
  SelectionMetric metric_;
  double value_ = 0;
  std::int64_t step_ = 0, since_ = 0;
};

/// Part of a run's plan. Its state is saved in checkpoints. Without a metric it does nothing.
class ModelSelection {
 public:
  ModelSelection() = default;
  /// `patience`: evaluations without an improvement that end the run.
  ModelSelection(std::optional<SelectionMetric> keep_best,
                 std::optional<SelectionMetric> early_stopping, std::int64_t patience);

  /// Takes note of the metrics of a step; those without an evaluation are ignored. Throws Failure
  /// (Errc::usage), naming the metrics of the evaluation, if it lacks the selected one.
  void observe(std::int64_t step, const Metrics& metrics);
  /// True if the checkpoint of this step is the best so far.
  bool is_best(std::int64_t step) const { return best_step() > 0 && best_step() == step; }
  /// Step of the best checkpoint; 0: none.
  std::int64_t best_step() const { return keep_best_ ? keep_best_->step() : 0; }
  /// True when the run ends because of early stopping.
  bool stops() const { return early_stopping_ && early_stopping_->since() >= patience_; }
  /// "eval/reward has not improved for 3 evaluations (best: 0.8 at step 40)"
  std::string reason() const;
  /// "eval/reward 0.8 at step 40"; empty without train.keep_best or an evaluation.
  std::string best_text() const;

  /// {"keep_best": {...}, "early_stopping": {...}}; null without a metric.
  Json state() const;
  /// Continues from the state in a checkpoint (null: none). Errc::corrupt.
  Result<> restore(const Json& state);

 private:
  std::optional<BestValue> keep_best_, early_stopping_;
  std::int64_t patience_ = 0;
};

}  // namespace troupe::algorithms
