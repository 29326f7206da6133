// RolloutBatches: the batches of samples of a run in the order in which they are trained. An
// algorithm states how a batch is sampled and how it is trained; this decides what overlaps.
//
// Version v of the weights is the policy after v batches. Batch b, counted from 0, is trained by
// version b. With async.mode off it is also sampled by it, after batch b - 1 was trained. With
// pinned it is sampled by version max(0, b - eta), as soon as that version exists and the rollouts
// have finished the batches before it. With free it is sampled by that version or later ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>

#include "actors/runtime/changes.h"
#include "algorithms/rollout/evaluation.h"
#include "algorithms/rollout/finished_samples.h"
#include "algorithms/rollout/rollout_pool.h"
#include "algorithms/training/plan.h"
#include "engine/base/errors/check.h"

namespace troupe::algorithms {

/// Counts prompts. With version v of the weights (v batches are trained), batches of B prompts and
/// a staleness of at most eta, (eta + v + 1) B prompts may have been started: batch b, counted from
/// 0, starts when version b - eta exists.
class Admission {
 public:
  struct Limits {
    std::int64_t batch = 1;      ///< prompts of a batch (B)
    std::int64_t eta = 0;        ///< maximum staleness in batches
    std::int64_t in_flight = 1;  ///< prompts that are sampled at a time, at least `batch`
  };
  /// `version`: of the weights at the start, after as many batches.
  Admission(const Limits& limits, std::int64_t version)
      : limits_(limits), version_(version), accepted_(version * limits.batch) {
    check(limits.batch > 0 && limits.eta >= 0 && limits.in_flight >= limits.batch,
          "Admission: expected a batch of at least 1, eta of at least 0 and in_flight of at least "
          "one batch");
  }

  /// Prompts that may start now.
  std::int64_t capacity() const {
    const std::int64_t fresh = (limits_.eta + version_ + 1) * limits_.batch - accepted_ - running_;
    return std::min(fresh, limits_.in_flight - running_);
  }
  bool admits_batch() const { return capacity() >= limits_.batch; }

  void start(std::int64_t prompts) {
    check(prompts <= capacity(), "Admission: more prompts were started than it admits");
    running_ += prompts;
  }
  /// Started prompts whose samples were rejected; others are started in their place.
  void reject(std::int64_t prompts) {
    check(prompts <= running_, "Admission: more prompts were rejected than are running");
    running_ -= prompts;
  }
  /// Started prompts whose samples are part of a batch.
  void accept(std::int64_t prompts) {
    check(prompts <= running_, "Admission: more prompts were accepted than are running");
    running_ -= prompts;
    accepted_ += prompts;
  }
  /// A batch was trained: there is a new version.
  void trained() { ++version_; }

  std::int64_t version() const { return version_; }
  std::int64_t running() const { return running_; }

 private:
  Limits limits_;
  std::int64_t version_, accepted_, running_ = 0;
};

/// Samples the next batch; nullopt when the prompts are used up. `has_trained`: it is not the
/// run's first batch.
using SampleBatch =
    std::function<Task<std::optional<RolloutBatch>>(Sampling from, bool has_trained)>;

/// How an algorithm forms batches.
struct BatchPlan {
  AsyncConfig async;
  std::int64_t samples = 1;  ///< of a batch, without refills
  std::int64_t updates = 1;  ///< optimizer steps per batch
  /// The prompts of a batch depend on the samples of the one before it, or its samples on each
  /// other: no batch is started before the one before it is complete.
  bool in_turn = false;
  /// Other programs make the samples: those that have arrived are part of a checkpoint.
  bool external = false;
};

class RolloutBatches {
 public:
  /// All arguments outlive it. Sets plan.before_save.
  RolloutBatches(Cluster& c, TrainingPlan& plan, const BatchPlan& batches,
                 const HeldOutPrompts& held_out, SampleBatch sample);

  /// Runs `training`, which takes the batches from next(), while the rollouts sample.
  Task<void> run(Task<void> training);

  /// The next batch, complete and in the order of admission; nullopt at the end of the prompts, and
  /// when too many of its rewards failed, which the journal records. Throws what its sampling
  /// threw.
  Task<std::optional<RolloutBatch>> next();
  /// Metrics of the versions that sampled a batch from next(). pinned and free:
  /// staleness/{mean,max}, over the sampled tokens, in batches. free: the numbers of samples during
  /// which new weights arrived (rollout/interrupted), of those that continued with them
  /// (rollout/resumed), and of those with tokens of several versions (rollout/mixed_versions).
  Metrics version_metrics(const RolloutBatch& samples) const;
  /// Optimizer updates of the weights that a batch from next() is trained by.
  std::uint64_t updates_before(const RolloutBatch& samples) const;
  /// Evaluates the weights after the batch that is being trained, if that is due after step `step`.
  Task<void> evaluate(std::int64_t before, std::int64_t step, Metrics& metrics);
  /// Saves step `step` before a batch within which the run ends, as save_round_start() does.
  Task<void> save_start(std::int64_t before, std::int64_t step, protocol::RunState& state);
  /// Ends the run after step `step`, because the prompts are used up, as algorithms::end_early().
  Task<void> end_early(std::int64_t before, std::int64_t step, protocol::RunState& state);
  /// Ends the batch that was trained by steps (before, step]: publishes its version, adds to
  /// `state` what the next batches need, and ends the step as algorithms::end_step() does. False
  /// when the run ends.
  Task<bool> end_step(std::int64_t before, std::int64_t step, protocol::RunState& state);

  /// Batches that are trained: the version of the policy's weights.
  std::int64_t trained() const { return trained_; }

 private:
  bool overlaps() const { return batches_.async.on(); }
  bool free() const { return batches_.async.free(); }
  bool keeps_samples() const { return free() || batches_.external; }
  bool saves_samples() const {
    return keeps_samples() && c_.versions && c_.versions->keeps_samples();
  }
  std::int64_t version_of(std::int64_t batch) const;
  Sampling sampling_of(std::int64_t version);
  void set_end(std::int64_t step);
  void restore_samples();
  Task<std::optional<RolloutBatch>> next_complete();
  void rethrow_failure() const;
  Task<void> begin();
  Task<void> publish(std::int64_t version);
  Task<void> close_after(Task<void> training);
  Task<void> sample_batches();
  Task<void> sample_batch();
  bool may_start() const;
  bool waits_for_weights() const;
  void note();
  void close(std::exception_ptr why);
  std::vector<SharedWeights> kept_versions() const;
  void save_kept(std::int64_t step, protocol::RunState& state);
  void add_batches(protocol::RunState& state) const;

  Cluster& c_;
  TrainingPlan& plan_;
  const BatchPlan batches_;
  const HeldOutPrompts& held_out_;
  const SampleBatch sample_;
  actors::Changes changes_;
  RolloutPool pool_;
  Admission admission_;

  std::int64_t trained_;                            // batches
  std::int64_t started_, sampled_, end_ = 0;        // batches: started, complete, to be started
  bool policy_waits_ = false;                       // in next()
  std::int64_t oldest_ = 0;                         // version that the first batches fall back to
  std::map<std::int64_t, SharedWeights> versions_;  // at most eta + 1; free: the newest
  FinishedSamples finished_;         // free, external: of batches that are not yet trained
  std::uint64_t in_checkpoint_ = 0;  // of these, in the newest checkpoint of step `saved_`
  std::int64_t saved_ = -1;
  std::map<std::int64_t, std::optional<RolloutBatch>> ready_;    // complete, not yet trained
  std::shared_ptr<bool> queued_ = std::make_shared<bool>(true);  // the last batch is in the pool
  bool exhausted_ = false, closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace troupe::algorithms
