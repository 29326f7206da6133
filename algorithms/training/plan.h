// TrainingPlan: length, learning rate and checkpoints of a run, and the start and end of a step,
// which are the same for every algorithm.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "algorithms/losses/loss_average.h"
#include "algorithms/training/cluster.h"
#include "algorithms/training/model_selection.h"
#include "engine/optim/schedule.h"

namespace troupe::algorithms {

struct TrainingPlan {
  std::int64_t steps = 0;       ///< optimizer steps of the run
  std::int64_t done = 0;        ///< steps of the checkpoint that the run resumes from
  std::int64_t save_every = 0;  ///< 0: only after the last step
  double learning_rate = 0;
  engine::optim::Schedule schedule;
  /// Where the schedule is after some steps, in full batches; empty: at their number.
  std::function<double(std::int64_t steps)> place = {};
  LossAverage average = {};       ///< of the rows' losses, where a method trains on rows
  ModelSelection selection = {};  ///< follows the evaluations
  std::int64_t batches_done = 0;  ///< batches of samples of the `done` steps
  /// Older versions of the weights that the checkpoint kept (RunState::versions).
  std::vector<std::uint64_t> versions = {};
  /// Called at the moment at which the checkpoint of a step is saved, to complete its state; may be
  /// empty.
  std::function<void(std::int64_t step, protocol::RunState& state)> before_save = {};
  bool done_is_saved = true;  ///< the output has the checkpoint of `done`
  bool resumable = true;      ///< checkpoints have what a resumed run needs

  /// Steps count from 1.
  double rate(std::int64_t step) const {
    return learning_rate * schedule(place ? place(step - 1) : static_cast<double>(step - 1));
  }
};

/// Records the metrics of a step in the journal and in the plan's model selection.
void record_step(Cluster& cluster, TrainingPlan& plan, std::int64_t step, const Metrics& metrics);

/// Waits until the checkpoints that the critic, if there is one, and the policy are writing are
/// durable, the critic's first: a policy's checkpoint marks the whole step as complete. Logs that
/// of the policy. Throws the error of their writing; the policy's is not completed after one of the
/// critic.
Task<void> finish_saves(std::optional<CriticRef> critic, PolicyRef policy,
                        std::chrono::steady_clock::duration timeout);

/// Ends step `step`: saves when a checkpoint is due, when it is the best one, at the last step
/// (also of early stopping), and when a stop was requested, with the `state` that a resumed run
/// continues from. The policy and the critic continue while they write a checkpoint, except the
/// last one: the algorithm waits for it before the next save. `previous` is the last step for which
/// this was called (step - 1, unless several steps share one rollout step). False when the run ends
/// here.
Task<bool> end_step(Cluster& cluster, const TrainingPlan& plan, std::int64_t previous,
                    std::int64_t step, protocol::RunState state);

/// Ends a run early because its prompts are used up: saves step `step`, unless end_step has saved
/// it and nothing was `added` to its state since.
Task<void> end_early(Cluster& cluster, const TrainingPlan& plan, std::int64_t previous,
                     std::int64_t step, protocol::RunState state, bool added = false);

/// True if the run ends within the rollout step that follows `step`, which has `updates` steps.
bool ends_within(const TrainingPlan& plan, std::int64_t step, std::int64_t updates);
/// Saves step `step`, unless it is saved, before a rollout step within which the run ends. A run
/// that is extended later repeats the rollout step from there: its samples are in no checkpoint.
/// `previous` as in end_step().
Task<void> save_round_start(Cluster& cluster, const TrainingPlan& plan, std::int64_t previous,
                            std::int64_t step, protocol::RunState state);

/// Trains the policy on the batch at the learning rate of this step.
Task<protocol::StepStats> train_step(Cluster& cluster, const TrainingPlan& plan, std::int64_t step,
                                     engine::data::Experience batch, engine::loss::LossSpec loss);

/// Metrics of every training step, then those of the loss.
Metrics metrics_of(const protocol::StepStats& stats);

/// train_step(), returning metrics_of().
Task<Metrics> update(Cluster& cluster, const TrainingPlan& plan, std::int64_t step,
                     engine::data::Experience batch, engine::loss::LossSpec loss);

}  // namespace troupe::algorithms
